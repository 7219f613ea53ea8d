// RemoteStep, and the functions of ModelEngine that make its closures. Each worker has a copy of the step. All copies
// update the same variables, the states of metrics included, which are on a parameter server: so they outlive a worker,
// and a step that runs again counts once.
#include "cohort/keras/training/remote_step.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/training/model_engine.h"
#include "cohort/keras/training/repeated_step.h"
#include "cohort/keras/training/replicated_step.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/slice.h"

namespace cohort::keras {
namespace {

bool SameElements(const data::ElementSpec& a, const data::ElementSpec& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].dtype != b[i].dtype || !(a[i].shape == b[i].shape)) return false;
  }
  return true;
}

// Returns weights of 1 for a batch.
Output OnesFor(const Output& x) {
  const Output size = ops::Slice(ops::ShapeOf(x), {0}, {1});
  return ops::Fill(size, ops::Const(x.graph(), 1.0f));
}

}  // namespace

void RemoteStep::PrepareFor(const WorkerBatches& batches) {
  if (data_.valid() && weighted_ == batches.weighted && SameElements(spec_, batches.spec)) return;
  data_ = coordinator_.CreatePerWorkerIterator(batches.spec);
  data_id_ = 0;
  spec_ = batches.spec;
  weighted_ = batches.weighted;
  std::erase_if(closures_, [](const auto& closure) { return closure.first.first; });
}

void RemoteStep::UseBatches(const WorkerBatches& batches) {
  if (data_.valid() && data_id_ == batches.id) return;
  PrepareFor(batches);
  coordinator_.SetPerWorkerDataset(data_, batches.dataset);
  data_id_ = batches.id;
}

const distribute::ClosureFunctionPtr& RemoteStep::ClosureFor(bool of_workers, int steps) {
  distribute::ClosureFunctionPtr& closure = closures_[{of_workers, steps}];
  if (closure == nullptr) closure = make_(of_workers ? data_ : distribute::PerWorkerValue(), weighted_, steps);
  return closure;
}

distribute::RemoteValue RemoteStep::Schedule(int64_t first, int steps) {
  return coordinator_.Schedule(ClosureFor(/*of_workers=*/true, steps), {Tensor::Scalar(first)});
}

distribute::RemoteValue RemoteStep::Schedule(int64_t first, const std::vector<std::vector<Tensor>>& batches) {
  std::vector<Tensor> arguments = {Tensor::Scalar(first)};
  for (const std::vector<Tensor>& batch : batches) arguments.insert(arguments.end(), batch.begin(), batch.end());
  return coordinator_.Schedule(ClosureFor(/*of_workers=*/false, static_cast<int>(batches.size())),
                               std::move(arguments));
}

// The description of a step, from which its closures are made.
struct ModelEngine::RemoteDescription {
  const CompiledModel& compiled;
  const bool training;
  const std::vector<data::TensorSpec> y_specs;
  const StepBody body;
  std::vector<MetricInStep> metrics;  // of the first copy; the others share the states
};

std::shared_ptr<RemoteStep> ModelEngine::MakeRemoteStep(const CompiledModel& compiled, bool training,
                                                        const std::vector<data::TensorSpec>& y_specs,
                                                        const StepBody& body, const WorkerBatches* batches,
                                                        Steps* steps) {
  if (coordinator_ == nullptr) {
    const distribute::CoordinatorOptions options = {.closures_in_flight = strategy_->steps_in_flight(),
                                                    .worker_timeout = strategy_->worker_timeout(),
                                                    .ps_timeout = strategy_->ps_timeout()};
    coordinator_ = std::make_unique<distribute::ClusterCoordinator>(strategy_, graph_, options);
  }
  const auto description =
      std::make_shared<RemoteDescription>(RemoteDescription{compiled, training, y_specs, body, {}});
  const auto first = std::make_shared<Steps*>(steps);  // null after this call
  auto remote = std::make_shared<RemoteStep>(
      *coordinator_, [this, description, first](const distribute::PerWorkerValue& data, bool weighted, int count) {
        Steps own;
        auto closure = MakeClosure(*description, data, weighted, count, *first != nullptr ? *first : &own);
        if (*first == nullptr) RunInitializers();
        return closure;
      });
  if (batches != nullptr) remote->PrepareFor(*batches);
  remote->Prepare(batches != nullptr, batches != nullptr ? compiled.steps_per_execution : 1);
  *first = nullptr;
  return remote;
}

distribute::ClosureFunctionPtr ModelEngine::MakeClosure(RemoteDescription& description,
                                                        const distribute::PerWorkerValue& data, bool weighted,
                                                        int count, Steps* steps) {
  const VariableCreatorScope names = OwnNames();
  // The states of metrics.
  const VariableCreatorScope states(graph_, [this](const VariableMaker& next, const VariableRequest& request) {
    const ColocateWith nowhere(graph_, nullptr);
    const DeviceScope device(graph_, strategy_->DeviceOfCopy(0));
    return next(request);
  });
  const auto add = [&](distribute::ClosureContext& worker) {
    StepNodes one;
    StepInputs inputs;
    inputs.step = ops::Placeholder(graph_, DType::kInt64, Shape(), "step");
    one.arguments.push_back(inputs.step);
    if (data.valid()) {
      const std::vector<Output> element = description.training ? worker.Get(data) : worker.GetAt(data, inputs.step);
      const size_t x = layers_->inputs().size();
      const size_t y = x + description.y_specs.size();
      inputs.x.assign(element.begin(), element.begin() + static_cast<std::ptrdiff_t>(x));
      inputs.y.assign(element.begin() + static_cast<std::ptrdiff_t>(x),
                      element.begin() + static_cast<std::ptrdiff_t>(y));
      inputs.sample_weight = weighted ? element.at(y) : OnesFor(inputs.x[0]);
    } else {
      FillWithPlaceholders(description.y_specs, &inputs);
    }
    if (!description.metrics.empty()) inputs.metrics = &description.metrics;
    strategy_->Run(graph_, [&](distribute::ReplicaContext& replica) {
      steps->push_back(DescribeStep(description.compiled, description.training, inputs, description.body, replica));
      return std::vector<Output>();
    });
    StepParts& parts = *steps->back()->parts_;
    if (description.metrics.empty()) description.metrics = parts.metrics;
    if (!data.valid()) {
      const std::vector<Output> feeds = parts.feeds();
      one.arguments.insert(one.arguments.end(), feeds.begin(), feeds.end());
    }
    const ReplicatedStep joined = JoinReplicas(*strategy_, {&parts}, OptimizersOf(description.training));
    one.fetches = joined.fetches;
    one.targets = joined.targets;
    const StepNodes all = Repeated(one, count, /*shared=*/1);
    for (int i = 1; data.valid() && description.training && i < count; ++i) worker.CountAgain(data);
    for (const Output& argument : all.arguments) worker.AddArgument(argument);
    return distribute::ClosureNodes{all.fetches, {ops::Group(graph_, all.targets, "step")}};
  };
  return coordinator_->MakeFunction(add, description.training ? "train_step" : "test_step");
}

}  // namespace cohort::keras
