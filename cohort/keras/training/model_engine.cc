// ModelEngine. The constructor puts the layers into the graph for prediction, makes the weights and initializes them.
// MakeStep describes a step once for each replica (DescribeStep), joins the replicas (replicated_step.h), and prepares
// callables. A StepFunction runs them.
#include "cohort/keras/training/model_engine.h"

#include <algorithm>

#include "cohort/core/crc32c.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/distribute/input.h"
#include "cohort/distribute/strategies.h"
#include "cohort/distribute/worker_meeting.h"
#include "cohort/keras/training/replicated_step.h"
#include "cohort/keras/training/variable_values.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"

namespace cohort::keras {

namespace {

// The time between two attempts to open a session.
constexpr std::chrono::milliseconds kSessionPause{50};

std::string OwnNamesOf(const distribute::Strategy& strategy) {
  if (strategy.session_target().empty()) return "";
  const int number = strategy.NextModel();
  return number == 0 ? "" : StrCat("model_", number, "/");
}

}  // namespace

StepFunction::Result StepFunction::Run(const std::vector<Tensor>& global_batch) const {
  return Run(distribute::RowsOfReplicas(*strategy_, global_batch));
}

StepFunction::Result StepFunction::Run(const Parts& parts, bool stop, const NextParts& next) const {
  if (remote_ != nullptr) {
    const distribute::RemoteValue value = remote_->Schedule(NextStep(), {parts.at(0)});
    remote_->Join();
    return ResultsOf(value.Fetch()).front();
  }
  int64_t examples = 0;
  for (const std::vector<Tensor>& part : parts) examples += part[0].shape().dim(0);
  const auto feeds_of = [&](const Parts& of) {
    std::vector<Tensor> feeds;
    for (const std::vector<Tensor>& part : of) feeds.insert(feeds.end(), part.begin(), part.end());
    if (votes_) feeds.push_back(Tensor::Scalar(stop ? 1.0f : 0.0f));
    return feeds;
  };
  Callable::NextFeeds next_feeds;
  if (next) {
    next_feeds = [&] {
      Parts following;
      return next(&following) ? feeds_of(following) : std::vector<Tensor>();
    };
  }
  Result result = ResultsOf((*step_)(feeds_of(parts), next_feeds)).front();
  if (!votes_) result.stops = stop;
  if (!CountsExamples(*strategy_)) result.examples = examples;
  return result;
}

void StepFunction::DropNext() const {
  if (step_) step_->DropNext();
}

std::vector<StepFunction::Result> StepFunction::ResultsOf(const std::vector<Tensor>& values) const {
  const size_t losses = 1 + output_loss_names_.size();
  const size_t fetches = losses + (CountsExamples(*strategy_) ? 1 : 0) + (votes_ ? 1 : 0);
  std::vector<Result> results;
  for (size_t begin = 0; begin + fetches <= values.size(); begin += fetches) {
    Result& result = results.emplace_back();
    for (size_t i = 0; i < losses; ++i) result.losses.push_back(values[begin + i].scalar<float>());
    if (CountsExamples(*strategy_)) result.examples = static_cast<int64_t>(values[begin + losses].scalar<float>());
    if (votes_) result.stops = values[begin + fetches - 1].scalar<float>() > 0;
  }
  return results;
}

int64_t StepFunction::NextStep() const { return training_ ? engine_->Iterations() : 0; }

void StepFunction::ResetMetrics() const {
  if (resets_.empty()) return;
  engine_->WithSession([this](Session& session) { session.Run({}, {}, resets_); });
}

Logs StepFunction::ReadMetrics(bool of_all) const {
  Logs logs;
  if (results_.empty()) return logs;
  const std::vector<Tensor> values =
      engine_->WithSession([&](Session& session) { return session.Run(of_all ? results_ : local_results_); });
  for (size_t i = 0; i < values.size(); ++i) logs.emplace_back(metrics_[i].first, values[i].scalar<float>());
  return logs;
}

std::vector<std::pair<std::string, MetricPtr>> StepFunction::metrics() const { return metrics_; }

bool StepFunction::OtherLayersAreFrozen() const {
  return std::any_of(layers_.begin(), layers_.end(), [](const LayerInstance::AddedLayer& added) {
    const std::shared_ptr<const Layer> layer = added.layer.lock();
    return layer != nullptr && layer->trainable() != added.trainable;
  });
}

ModelEngine::ModelEngine(std::shared_ptr<const LayerGraph> layers, DType compute_dtype, int64_t seed,
                         const SessionConfig& session_config, distribute::StrategyPtr strategy)
    : layers_(std::move(layers)),
      compute_dtype_(compute_dtype),
      strategy_(strategy != nullptr ? std::move(strategy) : distribute::Default()),
      own_names_(OwnNamesOf(*strategy_)),
      session_config_(strategy_->session_config(session_config)) {
  graph_.set_seed(seed);
  {
    const auto scope = strategy_->Scope(graph_);
    const VariableCreatorScope names = OwnNames();
    const DeviceScope device(graph_, strategy_->devices()[0]);
    x_ = InputPlaceholders();
    prediction_ = std::make_unique<LayerInstance>(
        weights_, LayerInstance::Options{.compute_dtype = compute_dtype, .warns = true});
    predictions_ = prediction_->Add(*layers_, "", x_);
    for (Output& output : predictions_) {
      if (output.dtype() == DType::kBfloat16) output = ops::Cast(output, DType::kFloat32);
    }
  }
  weights_.Freeze();
  ExpectEqualModels();
  for (int r = 1; r < strategy_->num_local_replicas(); ++r) {
    mirrors_.push_back(std::make_unique<WeightStore>(
        weights_, [&](const ops::Variable& variable) { return strategy_->Local(variable, r); }));
  }
  // Random layers draw other numbers at each worker.
  graph_.set_seed(seed + 1'000'003 * int64_t{strategy_->worker()});
  session_ = std::make_unique<Session>(graph_, strategy_->session_target(), session_config_);
  if (!strategy_->closure_workers().empty()) {
    earlier_.emplace(graph_, strategy_->DeviceOfCopy(0), own_names_);
    WithSession([this](Session& session) { earlier_->Look(session); });
    WithSession([this](Session& session) { earlier_->SetNumber(session, 0); });
  }
  RunInitializers();
}

bool ModelEngine::ReopenSession(const Error& error, std::chrono::steady_clock::time_point deadline) {
  const bool lost = error.code() == Code::kUnavailable || error.code() == Code::kAborted;
  if (strategy_->closure_workers().empty() || !lost || std::chrono::steady_clock::now() >= deadline) return false;
  LogWarning("keras", "the session of the chief was lost and is opened again: ", error.what());
  const MutexLock lock(predict_mu_);
  CondVar pause;
  pause.WaitFor(predict_mu_, kSessionPause);
  SessionConfig config = session_config_;
  config.connect_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::max(deadline - std::chrono::steady_clock::now(), std::chrono::steady_clock::duration::zero()));
  auto opened = std::make_unique<Session>(graph_, strategy_->session_target(), config);
  predict_.reset();
  session_ = std::move(opened);
  return true;
}

// Before the first collective of the graph: graphs that differ would wait for each other.
void ModelEngine::ExpectEqualModels() {
  std::vector<std::pair<std::string, std::string>> facts;
  facts.emplace_back("replicas of each worker", StrCat(strategy_->num_local_replicas()));
  for (const ModelWeight& weight : weights()) {
    facts.emplace_back(StrCat("weight ", weight.path), StrCat(weight.spec.dtype, weight.spec.shape));
  }
  strategy_->meeting().ExpectAgreement(
      "[keras/model] expected all workers to build the same model, by calling Build, "
      "Fit, Evaluate or Predict together",
      facts);
}

VariableCreatorScope ModelEngine::OwnNames() {
  return VariableCreatorScope(graph_, [this](const VariableMaker& next, const VariableRequest& request) {
    VariableRequest own = request;
    own.name = own_names_ + request.name;
    return next(own);
  });
}

std::vector<LayerInstance::LayerValues> ModelEngine::step_values() const {
  std::vector<LayerInstance::LayerValues> values;
  for (const LayerInstance::LayerValues& value : prediction_->values()) {
    if (value.is_whole()) values.push_back(value);
  }
  return values;
}

std::map<std::string, bool> ModelEngine::TrainableWeights() const {
  Graph scratch;
  WeightStore store(scratch);
  LayerInstance instance(store, {.compute_dtype = compute_dtype_});
  std::vector<Output> x;
  for (const LayerInput& input : layers_->inputs()) x.push_back(ops::Placeholder(scratch, input.dtype, input.shape));
  instance.Add(*layers_, "", x);
  std::map<std::string, bool> trainable;
  for (const ModelWeight& weight : store.weights()) trainable[weight.path] = weight.trainable;
  return trainable;
}

void ModelEngine::UpdateTrainable() {
  const std::map<std::string, bool> trainable = TrainableWeights();
  weights_.SetTrainable(trainable);
  for (const auto& mirror : mirrors_) mirror->SetTrainable(trainable);
}

std::vector<Output> ModelEngine::InputPlaceholders() {
  std::vector<Output> placeholders;
  for (const LayerInput& input : layers_->inputs()) {
    placeholders.push_back(ops::Placeholder(graph_, input.dtype, input.shape, "x"));
  }
  return placeholders;
}

void ModelEngine::RunInitializers() {
  std::vector<Node*> initializers;
  std::vector<VariableInfo*> fresh;
  for (VariableInfo* variable : graph_.variables()) {
    if (variable->initializer == nullptr) continue;  // it stands for parts, which have theirs
    if (initialized_.contains(variable)) continue;
    fresh.push_back(variable);
    initializers.push_back(variable->initializer);
  }
  if (initializers.empty()) return;
  if (earlier_) WithSession([&](Session& session) { earlier_->Keep(session, fresh); });
  WithSession([&](Session& session) { session.Run({}, {}, initializers); });
  initialized_.insert(fresh.begin(), fresh.end());
}

std::vector<Tensor> ModelEngine::GetWeights() {
  std::vector<ops::Variable> variables;
  for (const ModelWeight& weight : weights()) variables.push_back(weight.variable);
  return WithSession([&](Session& session) { return ReadVariables(session, variables); });
}

void ModelEngine::SetWeights(const std::vector<Tensor>& values) {
  if (values.size() != weights().size()) {
    throw InvalidArgumentError(StrCat("[keras/model] expected ", weights().size(), " weights; got ", values.size()));
  }
  std::vector<Tensor> copies;
  for (size_t i = 0; i < values.size(); ++i) {
    const WeightSpec& spec = weights()[i].spec;
    if (values[i].dtype() != spec.dtype || !(values[i].shape() == spec.shape)) {
      throw InvalidArgumentError(StrCat("[keras/model] expected ", spec.dtype, spec.shape, " for weight '",
                                        weights()[i].path, "'; got ", values[i].dtype(), values[i].shape()));
    }
    copies.push_back(values[i].Clone());
  }
  if (new_values_.empty()) {
    std::vector<Node*> assignments;
    const auto copies_of_each = static_cast<size_t>(strategy_->num_copies());
    for (size_t i = 0; i < weights().size(); ++i) {
      const ModelWeight& weight = weights()[i];
      new_values_.push_back(ops::Placeholder(graph_, weight.spec.dtype, weight.spec.shape, "new_value"));
      for (size_t r = 0; r < copies_of_each; ++r) {
        assignments.push_back(store(r).weights()[i].variable.Assign(new_values_.back()));
      }
    }
    set_weights_ = ops::Group(graph_, assignments, "set_weights");
  }
  FeedList feeds;
  for (size_t i = 0; i < copies.size(); ++i) feeds.emplace_back(new_values_[i], copies[i]);
  WithSession([&](Session& session) { session.Run(feeds, {}, {set_weights_}); });
}

void ModelEngine::ForgetEarlierTraining(int64_t number) {
  if (!earlier_) return;
  earlier_->Forget();
  WithSession([&](Session& session) { earlier_->SetNumber(session, number); });
}

void ModelEngine::SetOptimizer(const Optimizer& optimizer) {
  const bool is_first = optimizers_.empty();
  optimizers_.clear();
  const VariableCreatorScope names = OwnNames();
  for (int r = 0; r < strategy_->num_copies(); ++r) {
    std::optional<NameScope> replica;
    if (r > 0) replica.emplace(graph_, StrCat("replica_", r));
    const DeviceScope device(graph_, strategy_->DeviceOfCopy(r));
    optimizers_.push_back(optimizer.Make(graph_, !strategy_->closure_workers().empty()));
  }
  set_learning_rate_.clear();
  if (is_first && earlier_) {
    const ops::Variable iterations = optimizers_[0]->iterations();
    WithSession([&](Session& session) { earlier_->LookForSteps(session, iterations); });
  }
  RunInitializers();
}

void ModelEngine::SetOptimizerVariables(const std::vector<Tensor>& values) {
  std::vector<ops::Variable> variables;
  std::vector<Tensor> values_of_all;
  for (const auto& one : optimizers_) {
    const std::vector<ops::Variable> of_one = one->variables();
    variables.insert(variables.end(), of_one.begin(), of_one.begin() + static_cast<std::ptrdiff_t>(values.size()));
    values_of_all.insert(values_of_all.end(), values.begin(), values.end());
  }
  WithSession([&](Session& session) { AssignVariables(session, variables, values_of_all); });
}

double ModelEngine::GetLearningRate() {
  return WithSession([&](Session& session) { return session.Run(optimizer()->learning_rate()).scalar<float>(); });
}

void ModelEngine::SetLearningRate(double rate) {
  if (!optimizer()->learning_rate_variable().valid()) {
    throw FailedPreconditionError(
        "[keras/model] expected an optimizer with a fixed learning rate to set it; this one follows a schedule");
  }
  if (set_learning_rate_.empty()) {
    new_learning_rate_ = ops::Placeholder(graph_, DType::kFloat32, Shape(), "new_learning_rate");
    for (const auto& one : optimizers_) {
      set_learning_rate_.push_back(one->learning_rate_variable().Assign(new_learning_rate_));
    }
  }
  const FeedList feeds = {{new_learning_rate_, Tensor::Scalar(static_cast<float>(rate))}};
  WithSession([&](Session& session) { session.Run(feeds, {}, set_learning_rate_); });
}

int64_t ModelEngine::Iterations() {
  const Output iterations = optimizer()->iterations().value();
  return WithSession([&](Session& session) { return session.Run(iterations).scalar<int64_t>(); });
}

std::unique_ptr<StepContext> ModelEngine::DescribeStep(const CompiledModel& compiled, bool training,
                                                       const StepInputs& inputs, const StepBody& body,
                                                       distribute::ReplicaContext& replica) {
  auto parts = std::make_unique<StepParts>(StepParts{.layers = *layers_,
                                                     .compiled = compiled,
                                                     .weights = store(static_cast<size_t>(replica.local_replica())),
                                                     .optimizer = training ? optimizer() : nullptr,
                                                     .compute_dtype = compute_dtype_,
                                                     .inputs = inputs,
                                                     .replica = &replica});
  auto step = std::make_unique<StepContext>(std::move(parts));
  {
    const NameScope scope(graph_, training ? "train" : "test");
    body(*step);
  }
  if (step->parts_->reported_loss.valid() && step->parts_->instance != nullptr) return step;
  throw FailedPreconditionError(StrCat("[keras/train_step] expected ", training ? "train_step" : "test_step",
                                       " to call the model and to report a loss (StepContext::ReportLoss); it did ",
                                       "not"));
}

void ModelEngine::FillWithPlaceholders(const std::vector<data::TensorSpec>& y_specs, StepInputs* inputs) {
  inputs->x = InputPlaceholders();
  for (const data::TensorSpec& spec : y_specs) {
    inputs->y.push_back(ops::Placeholder(graph_, spec.dtype, spec.shape, "y"));
  }
  inputs->sample_weight = ops::Placeholder(graph_, DType::kFloat32, Shape{-1}, "sample_weight");
}

StepFunction ModelEngine::MakeStep(const CompiledModel& compiled, bool training,
                                   const std::vector<data::TensorSpec>& y_specs, const StepBody& body,
                                   const WorkerBatches* batches) {
  Steps steps;
  StepFunction function;
  if (strategy_->closure_workers().empty()) {
    function.votes_ = training && strategy_->num_workers() > 1;
    function.step_ = MakeReplicaStep(compiled, training, y_specs, body, function.votes_, &steps);
  } else {
    function.remote_ = MakeRemoteStep(compiled, training, y_specs, body, batches, &steps);
  }
  Complete(steps, &function);
  function.strategy_ = strategy_.get();
  function.y_specs_ = y_specs;
  function.training_ = training;
  function.steps_per_execution_ = compiled.steps_per_execution;
  return function;
}

std::vector<GraphOptimizer*> ModelEngine::OptimizersOf(bool training) const {
  std::vector<GraphOptimizer*> optimizers;
  if (!training) return optimizers;
  for (const auto& optimizer : optimizers_) optimizers.push_back(optimizer.get());
  return optimizers;
}

Callable ModelEngine::MakeReplicaStep(const CompiledModel& compiled, bool training,
                                      const std::vector<data::TensorSpec>& y_specs, const StepBody& body, bool votes,
                                      Steps* steps) {
  const VariableCreatorScope names = OwnNames();
  strategy_->Run(graph_, [&](distribute::ReplicaContext& replica) {
    StepInputs inputs;
    FillWithPlaceholders(y_specs, &inputs);
    steps->push_back(DescribeStep(compiled, training, inputs, body, replica));
    return std::vector<Output>();
  });
  std::vector<Output> feeds;
  std::vector<StepParts*> replicas;
  for (const auto& step : *steps) {
    replicas.push_back(step->parts_.get());
    const std::vector<Output> own = step->parts_->feeds();
    feeds.insert(feeds.end(), own.begin(), own.end());
  }
  Output stop_vote;
  if (votes) {
    const DeviceScope device(graph_, strategy_->devices()[0]);
    // All replicas of this process add it: what matters is only whether the sum is 0.
    stop_vote = ops::Placeholder(graph_, DType::kFloat32, Shape(), "stop_vote");
    feeds.push_back(stop_vote);
  }
  const ReplicatedStep joined = JoinReplicas(*strategy_, replicas, OptimizersOf(training), stop_vote);
  Node* step = ops::Group(graph_, joined.targets, training ? "train_step" : "test_step");
  RunInitializers();  // of what the step has made
  return session_->MakeCallable(feeds, joined.fetches, {step});
}

void ModelEngine::Complete(const Steps& steps, StepFunction* function) {
  std::vector<StepParts*> replicas;
  for (const auto& step : steps) {
    StepParts& parts = *step->parts_;
    replicas.push_back(&parts);
    StepFunction::Replica replica{parts.feeds(), parts.reported_loss, parts.instance->values()};
    function->replicas_.push_back(std::move(replica));
  }
  // The copies of a step for workers have the metrics of the first one.
  if (function->remote_ != nullptr) replicas.resize(1);
  function->layers_ = replicas[0]->instance->layers();
  for (const auto& [name, loss] : replicas[0]->output_losses) function->output_loss_names_.push_back(name);
  std::vector<Node*> resets;
  std::vector<Output> local_results, results;
  for (ReplicatedMetric& metric : JoinMetrics(*strategy_, replicas)) {
    resets.insert(resets.end(), metric.resets.begin(), metric.resets.end());
    local_results.push_back(metric.local_result);
    results.push_back(metric.result);
    function->metrics_.emplace_back(metric.name, metric.metric);
  }
  RunInitializers();
  function->engine_ = this;
  function->resets_ = std::move(resets);
  function->local_results_ = std::move(local_results);
  function->results_ = std::move(results);
}

void ModelEngine::ExpectEqualReplicas() {
  if (strategy_->num_replicas_in_sync() == 1 || !strategy_->has_copies()) return;
  std::vector<std::string> names;
  for (const ModelWeight& weight : weights()) names.push_back(StrCat("weight '", weight.path, "'"));
  if (!optimizers_.empty()) {
    for (const ops::Variable& variable : optimizers_[0]->variables()) {
      names.push_back(StrCat("optimizer variable '", variable.name(), "'"));
    }
  }
  std::vector<Output> values;
  for (size_t r = 0; r <= mirrors_.size(); ++r) {
    for (const ModelWeight& weight : store(r).weights()) values.push_back(weight.variable.value());
    if (optimizers_.empty()) continue;
    for (const ops::Variable& variable : optimizers_[r]->variables()) values.push_back(variable.value());
  }
  std::string mine;
  for (const Tensor& value : session_->Run(values)) {
    const uint32_t crc = crc32c::Value({static_cast<const char*>(value.raw_data()), value.bytes()});
    mine.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  }
  std::string all;  // [replicas, names]
  const std::vector<std::string> parts = strategy_->meeting().Gather(mine);
  for (size_t worker = 0; worker < parts.size(); ++worker) {
    if (parts[worker].size() != mine.size()) {
      throw DataLossError(StrCat("[keras/model] expected the same weights and optimizer variables at all workers; ",
                                 strategy_->meeting().Describe(static_cast<int>(worker)), " has ",
                                 parts[worker].size() / sizeof(uint32_t), " where this one has ",
                                 mine.size() / sizeof(uint32_t)));
    }
    all += parts[worker];
  }
  const size_t row = names.size() * sizeof(uint32_t);
  for (size_t replica = 1; replica < strategy_->members().size(); ++replica) {
    for (size_t i = 0; i < names.size(); ++i) {
      const size_t at = i * sizeof(uint32_t);
      if (all.compare(replica * row + at, sizeof(uint32_t), all, at, sizeof(uint32_t)) == 0) continue;
      throw DataLossError(StrCat("[keras/model] expected equal weights at all replicas; ", names[i], " of replica ",
                                 replica, " (", strategy_->members()[replica], ") differs from that of replica 0 (",
                                 strategy_->members()[0], ") after ", optimizers_.empty() ? 0 : Iterations(),
                                 " updates: start all workers from the same weights, and let only Fit change them"));
    }
  }
}

std::vector<Tensor> ModelEngine::Predict(const std::vector<Tensor>& x) {
  if (strategy_->closure_workers().empty()) return PredictFunction()(x);
  // The session may have to be opened again, so one thread at a time uses it.
  const MutexLock lock(remote_predict_mu_);
  FeedList feeds;
  for (size_t i = 0; i < x.size(); ++i) feeds.emplace_back(x_[i], x[i]);
  return WithSession([&](Session& session) { return session.Run(feeds, predictions_).values(); });
}

Callable ModelEngine::PredictFunction() {
  const MutexLock lock(predict_mu_);
  if (!predict_) predict_ = session_->MakeCallable(x_, predictions_);
  return *predict_;
}

}  // namespace cohort::keras
