// ModelState. Layers and weights are made when they are first needed (EngineFor), because a Sequential may learn its
// input shape only from the data. Compile keeps its arguments until the outputs are known (ResolveCompiled). Steps of
// training and evaluation are made when they are first run (Step).
#include "cohort/keras/training/model_state.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/model_config.h"
#include "cohort/keras/training/variable_values.h"

namespace cohort::keras {
namespace {

DType ComputeDType(const std::string& policy) {
  if (policy == "float32") return DType::kFloat32;
  if (policy == "mixed_bfloat16") return DType::kBfloat16;
  throw InvalidArgumentError(
      StrCat("[keras/model] expected dtype_policy 'float32' or 'mixed_bfloat16'; got '", policy, "'"));
}

}  // namespace

ModelState::ModelState(ModelOptions options, MakeLayers make_layers)
    : options_(std::move(options)), make_layers_(std::move(make_layers)) {
  ComputeDType(options_.dtype_policy);
}

bool ModelState::built() const {
  const MutexLock lock(build_mu_);
  return engine_ != nullptr;
}

ModelEngine& ModelState::EngineFor(const data::ElementSpec& data) {
  const MutexLock lock(build_mu_);
  if (layers_ == nullptr) layers_ = make_layers_(data);
  if (layers_ == nullptr) {
    throw FailedPreconditionError(StrCat("[keras/model] expected the input shape of model '", options_.name,
                                         "' to be known; begin it with Input(shape), call Build(shape), or Fit it"));
  }
  if (engine_ == nullptr) {
    auto engine = std::make_unique<ModelEngine>(layers_, ComputeDType(options_.dtype_policy), options_.seed,
                                                options_.session, options_.strategy);
    InheritWeights(*engine);
    engine_ = std::move(engine);
  }
  return *engine_;
}

bool ModelState::BuildIfKnown() {
  {
    const MutexLock lock(build_mu_);
    if (layers_ == nullptr) layers_ = make_layers_({});
    if (layers_ == nullptr) return false;
  }
  engine();
  if (compile_options_ && compiled_ == nullptr) ResolveCompiled();
  return true;
}

void ModelState::BuildIfItInherits() {
  {
    const MutexLock lock(build_mu_);
    if (layers_ == nullptr) layers_ = make_layers_({});
    if (layers_ == nullptr || layers_->inherited().empty()) return;
  }
  engine();
}

void ModelState::InheritWeights(ModelEngine& engine) const {
  if (layers_->inherited().empty()) return;
  std::map<ModelState*, std::vector<Tensor>> all_of;  // the weights of each other model
  std::map<std::string, Tensor> values;               // by path in this model
  std::map<std::string, std::string> models;
  for (const auto& [layer, origin] : layers_->inherited()) {
    const auto [theirs, is_new] = all_of.try_emplace(origin.model.get());
    if (is_new) theirs->second = origin.model->engine().GetWeights();
    const std::string path = PathOf(*layer) + (origin.part.empty() ? "" : "/" + origin.part);
    const std::vector<ModelWeight>& weights = origin.model->engine().weights();
    for (const size_t i : WeightsBelow(weights, origin.path)) {
      const std::string below =
          origin.path.empty() ? "/" + weights[i].path : weights[i].path.substr(origin.path.size());
      values[path + below] = theirs->second[i];
      models[path + below] = origin.model->name();
    }
  }
  std::vector<Tensor> all = engine.GetWeights();
  for (size_t i = 0; i < all.size(); ++i) {
    const ModelWeight& weight = engine.weights()[i];
    const auto found = values.find(weight.path);
    if (found == values.end()) continue;
    if (!(found->second.shape() == weight.spec.shape) || found->second.dtype() != weight.spec.dtype) {
      throw InvalidArgumentError(StrCat("[keras/model] expected inputs for which weight '", weight.path, "' of model '",
                                        name(), "' is ", found->second.dtype(), found->second.shape(), " as in model '",
                                        models[weight.path], "'; got inputs that need ", weight.spec.dtype,
                                        weight.spec.shape,
                                        "; apply the layer to values of the same shape, or make a new layer"));
    }
    all[i] = found->second;
  }
  engine.SetWeights(all);
  layers_->ForgetInherited();  // if something above throws, the next call of EngineFor tries again
}

std::vector<LayerTensor> ModelState::ValuesOf(const std::shared_ptr<ModelState>& self, size_t step) {
  if (values_.empty()) {
    for (size_t i = 0; i < layers_->steps().size(); ++i) {
      const LayerGraph::LayerStep& made = layers_->steps()[i];
      if (i < layers_->inputs().size()) {
        const auto call = std::make_shared<const LayerCall>(LayerCall{made.layer, {}});
        values_.push_back({LayerTensor(call, 0, layers_->inputs()[i])});
        continue;
      }
      std::vector<LayerTensor> inputs;
      for (const LayerGraph::Value& input : made.inputs) {
        inputs.push_back(values_[input.step].at(static_cast<size_t>(input.index)));
      }
      values_.push_back(made.layer.Apply(inputs));
    }
  }
  // The model is kept alive by what is handed out, not by what it keeps itself.
  std::vector<LayerTensor> results;
  for (const LayerTensor& value : values_.at(step)) {
    results.emplace_back(value.call(), value.index(), LayerInput{value.dtype(), value.shape()}, self);
  }
  return results;
}

std::string ModelState::PathOf(const Layer& layer) const {
  const std::vector<std::string> names = StepNames(*layers_);
  for (size_t i = 0; i < names.size(); ++i) {
    if (&*layers_->steps()[i].layer == &layer) return names[i];
  }
  throw InternalError(StrCat("[keras/model] layer '", layer.name(), "' is none of model '", name(), "'"));
}

void ModelState::WarnOfFrozenLayers() {
  if (warned_of_frozen_ || !train_->OtherLayersAreFrozen()) return;
  warned_of_frozen_ = true;
  LogWarning("keras", "layers of model '", name(),
             "' were frozen or freed since it was first fitted; Fit and Evaluate go on as before: Compile the model "
             "again");
}

void ModelState::Compile(const CompileOptions& options) {
  if (!options.optimizer) throw InvalidArgumentError("[keras/compile] expected an optimizer; got none");
  const std::vector<LossArgument>& losses = options.loss.get();
  if (options.steps_per_execution < 1) {
    throw InvalidArgumentError(
        StrCat("[keras/compile] expected steps_per_execution of at least 1; got ", options.steps_per_execution));
  }
  const distribute::StrategyPtr& strategy = options_.strategy;
  if (options.steps_per_execution > 1 && (strategy == nullptr || strategy->closure_workers().empty())) {
    throw InvalidArgumentError(
        StrCat("[keras/compile] expected steps_per_execution of 1 without a ParameterServerStrategy, because a step ",
               "is not sent to a worker then; got ", options.steps_per_execution));
  }
  if (strategy != nullptr && !strategy->closure_workers().empty()) {
    const Optimizer& optimizer = *options.optimizer.get();
    const auto refuse = [&](const char* option, const std::optional<int64_t>& steps, const char* instead) {
      if (!steps) return;
      throw InvalidArgumentError(StrCat("[keras/compile] ", option, " is not supported with ", strategy->name(),
                                        ", because its workers make their steps in no order; got ", *steps, " in '",
                                        optimizer.name(), "'; use ", instead, " or another strategy"));
    };
    refuse("gradient_accumulation_steps", optimizer.options().gradient_accumulation_steps, "a larger batch");
    refuse("ema_overwrite_frequency", optimizer.options().ema_overwrite_frequency, "use_ema alone");
  }
  if (std::none_of(losses.begin(), losses.end(), [](const LossArgument& loss) { return bool(loss); })) {
    throw InvalidArgumentError("[keras/compile] expected a loss; got none");
  }
  std::unique_ptr<const CompiledModel> compiled = built() ? Resolved(options) : nullptr;
  compile_options_ = options;
  compiled_ = std::move(compiled);
  train_.reset();
  test_.reset();
  warned_of_frozen_ = false;
  waiting_state_.clear();
  averages_in_model_ = false;
  if (compiled_ != nullptr) engine().SetOptimizer(*compiled_->optimizer);
}

void ModelState::ResolveCompiled() {
  compiled_ = Resolved(*compile_options_);
  engine().SetOptimizer(*compiled_->optimizer);
}

std::unique_ptr<const CompiledModel> ModelState::Resolved(const CompileOptions& options) {
  const size_t outputs = layers_->outputs().size();
  const auto check_count = [&](size_t count, const char* what) {
    if (count == 1 || count == outputs) return;
    throw InvalidArgumentError(StrCat("[keras/compile] expected one ", what, ", or one for each of the ", outputs,
                                      " outputs of model '", name(), "'; got ", count));
  };
  const std::vector<LossArgument>& losses = options.loss.get();
  check_count(losses.size(), "loss");
  if (!options.loss_weights.empty()) check_count(options.loss_weights.size(), "loss weight");
  auto resolved = std::make_unique<CompiledModel>();
  CompiledModel& compiled = *resolved;
  compiled.optimizer = options.optimizer.get();
  compiled.steps_per_execution = options.steps_per_execution;
  const std::vector<LayerInstance::LayerValues> values = engine().step_values();
  for (size_t i = 0; i < outputs; ++i) {
    compiled.losses.push_back(losses[losses.size() == 1 ? 0 : i].get());
    const std::vector<double>& weights = options.loss_weights;
    compiled.loss_weights.push_back(weights.empty() ? 1.0 : weights[weights.size() == 1 ? 0 : i]);
    compiled.output_names.push_back(outputs == 1 ? "" : values[layers_->output_values()[i].step].path);
    if (compiled.losses.back() == nullptr) continue;
    for (const MetricArgument& metric : options.metrics) compiled.metrics.push_back({i, metric, false});
    for (const MetricArgument& metric : options.weighted_metrics) compiled.metrics.push_back({i, metric, true});
  }
  return resolved;
}

void ModelState::RequireCompiled(const char* caller) const {
  if (compile_options_) return;
  throw FailedPreconditionError(
      StrCat("[keras/", caller, "] expected a compiled model; call Compile on model '", name(), "' first"));
}

ModelEngine& ModelState::CompiledEngine(const char* caller, const data::ElementSpec& data) {
  RequireCompiled(caller);
  ModelEngine& built = EngineFor(data);
  if (compiled_ == nullptr) ResolveCompiled();
  return built;
}

const StepFunction& ModelState::Step(bool training, const std::vector<data::TensorSpec>& y_specs,
                                     const WorkerBatches* batches) {
  if (train_ == nullptr && test_ != nullptr && test_->OtherLayersAreFrozen()) test_.reset();
  std::unique_ptr<StepFunction>& step = training ? train_ : test_;
  if (step != nullptr) {
    bool same = true;
    for (size_t i = 0; i < y_specs.size(); ++i) {
      const data::TensorSpec& built = step->y_specs()[i];
      if (built.dtype == y_specs[i].dtype && built.shape.IsCompatibleWith(y_specs[i].shape)) continue;
      if (training) {
        throw InvalidArgumentError(StrCat("[keras/fit] expected targets ", built.dtype, built.shape, " as when model '",
                                          name(), "' was first fitted; got ", y_specs[i].dtype, y_specs[i].shape,
                                          "; Compile it again to change them"));
      }
      same = false;
    }
    if (same) {
      if (training) WarnOfFrozenLayers();
      return *step;
    }
  }
  const std::function<void(StepContext&)>& own = training ? compile_options_->train_step : compile_options_->test_step;
  const std::function<void(StepContext&)> body = own ? own : training ? DefaultTrainStep : DefaultTestStep;
  if (train_ == nullptr) engine().UpdateTrainable();
  // A program may have set the learning rate since the file was loaded.
  const std::vector<Tensor> state = training && !waiting_state_.empty() ? OptimizerState() : std::vector<Tensor>();
  step = std::make_unique<StepFunction>(engine().MakeStep(*compiled_, training, y_specs, body, batches));
  if (!state.empty()) SetOptimizerState(state, "the file that was loaded");
  return *step;
}

void ModelState::MakeWaitingSlots(const std::vector<data::TensorSpec>& y_specs) {
  if (train_ == nullptr && !waiting_state_.empty()) Step(/*training=*/true, y_specs);
}

std::vector<Tensor> ModelState::OptimizerState() {
  std::vector<Tensor> values =
      engine().WithSession([&](Session& session) { return ReadVariables(session, engine().optimizer()->variables()); });
  for (size_t slot = values.size(); slot < waiting_state_.size(); ++slot) values.push_back(waiting_state_[slot]);
  return values;
}

bool ModelState::SetOptimizerState(const std::vector<Tensor>& values, const std::string& where) {
  waiting_state_.clear();
  std::vector<ops::Variable> variables = engine().optimizer()->variables();
  const bool begun = train_ != nullptr;
  const bool complete = begun ? values.size() == variables.size() : values.size() >= variables.size();
  if (!complete || !ValuesFit(values, variables, variables.size())) {
    LogWarning("keras", "the optimizer '", compiled_->optimizer->name(), "' of model '", name(), "' has ",
               variables.size(), " variables that are not those of ", where, " (", values.size(), "): it begins anew");
    return false;
  }
  engine().SetOptimizerVariables({values.begin(), values.begin() + static_cast<std::ptrdiff_t>(variables.size())});
  averages_in_model_ = false;
  // The slots are made with the training step.
  if (!begun && values.size() > variables.size()) waiting_state_ = values;
  return true;
}

}  // namespace cohort::keras
