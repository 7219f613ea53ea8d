// What all of Keras's optimizers do: their variables, clipping and the form in files. train::Optimizer runs the rule.
#include "cohort/keras/optimizers/optimizer.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/optimizers/own_slots.h"
#include "cohort/ops/array.h"
#include "cohort/ops/clip.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/ops/variables.h"
#include "cohort/train/update_rules.h"

namespace cohort::keras {
namespace {

// Returns the variable of which `variable` is a part, or `variable` itself.
ops::Variable WholeOf(const ops::Variable& variable) {
  for (VariableInfo* info : variable.graph().variables()) {
    if (info->handle.valid()) continue;  // it has no parts
    const ops::Variable whole(info);
    const std::vector<ops::Variable> parts = whole.parts();
    if (std::find(parts.begin(), parts.end(), variable) != parts.end()) return whole;
  }
  return variable;
}

// Returns a variable that has the slots of the parts of `whole` as its parts.
ops::Variable SlotOfParts(const train::Optimizer& optimizer, const ops::Variable& whole, const std::string& name) {
  Graph& graph = whole.graph();
  std::vector<VariableInfo*> parts;
  for (const ops::Variable& part : whole.parts()) {
    const ops::Variable slot = optimizer.slot(part, name);
    if (!slot.valid()) {
      throw FailedPreconditionError(StrCat("[keras/optimizer] expected gradients for all parts of variable '",
                                           whole.name(), "'; part '", part.name(), "' has none"));
    }
    parts.push_back(slot.info());
  }
  const ColocateWith beside(graph, *parts.at(0)->handle.node);
  const NameScope root(graph, "");
  VariableRequest request;
  request.name = graph.UniqueName(StrCat(whole.name(), "/", optimizer.name(), "/", name));
  request.dtype = parts[0]->dtype;
  request.shape = whole.shape();
  return ops::Variable(ops::MakeVariableOfParts(graph, request, parts));
}

// Scales the gradient of each variable down to a norm. The gradients of a variable's parts are one gradient.
std::vector<Gradient> ClippedByNorm(const std::vector<train::GradientAndVariable>& pairs,
                                    std::vector<Gradient> gradients, float norm) {
  std::vector<std::pair<ops::Variable, std::vector<size_t>>> of_wholes;  // in the order of the first part
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (!gradients[i].exists()) continue;
    const ops::Variable whole = WholeOf(pairs[i].variable);
    const auto same = [&](const auto& other) { return other.first == whole; };
    auto place = std::find_if(of_wholes.begin(), of_wholes.end(), same);
    if (place == of_wholes.end()) place = of_wholes.insert(place, {whole, {}});
    place->second.push_back(i);
  }
  for (const auto& [whole, parts] : of_wholes) {
    if (parts.size() == 1) {
      Output& values = gradients[parts[0]].values;
      values = ops::ClipByNorm(values, norm);
      continue;
    }
    std::vector<Gradient> own;
    for (const size_t part : parts) own.push_back(gradients[part]);
    own = ops::ClipByGlobalNorm(own, norm).gradients;
    for (size_t i = 0; i < parts.size(); ++i) gradients[parts[i]] = own[i];
  }
  return gradients;
}

std::vector<train::GradientAndVariable> Unscaled(std::vector<train::GradientAndVariable> pairs,
                                                 const std::optional<double>& scale) {
  if (!scale) return pairs;
  for (train::GradientAndVariable& pair : pairs) {
    if (!pair.gradient.exists()) continue;
    Output& values = pair.gradient.values;
    values = ops::Div(values, ops::ScalarLike(values, *scale));
  }
  return pairs;
}

}  // namespace

GraphOptimizer::GraphOptimizer(Graph& graph, const CommonOptions& options, train::UpdateRulePtr rule,
                               bool several_workers)
    : options_(options), several_workers_(several_workers) {
  const NameScope scope(graph, options.name);
  iterations_ = ops::Variable(graph, Tensor::Scalar(int64_t{0}), {.name = "iteration", .trainable = false});
  updates_ = iterations_.value();
  if (const auto steps = options.gradient_accumulation_steps) {
    updates_ = ops::FloorDiv(updates_, ops::ScalarLike(updates_, static_cast<double>(*steps)));
  }
  if (const LearningRateSchedulePtr& schedule = options.learning_rate.schedule()) {
    learning_rate_ = schedule->At(iterations_.value());
    if (learning_rate_.dtype() != DType::kFloat32) learning_rate_ = ops::Cast(learning_rate_, DType::kFloat32);
  } else {
    const auto rate = static_cast<float>(options.learning_rate.value());
    rate_variable_ = ops::Variable(graph, Tensor::Scalar(rate), {.name = "learning_rate", .trainable = false});
    learning_rate_ = rate_variable_.value();
  }
  Output next = iterations_.value() + int64_t{1};
  if (const auto steps = options.gradient_accumulation_steps) {
    next = ops::FloorDiv(next, ops::ScalarLike(next, static_cast<double>(*steps)));
  }
  next_number_in_files_ = rule->NumberInFiles(ops::Cast(next, DType::kFloat32));
  if (next_number_in_files_.valid()) {
    number_in_files_ = ops::Variable(graph, Tensor::Scalar(1.0f), {.name = "number", .trainable = false});
  }
  if (options.weight_decay) rule = train::WithWeightDecay(std::move(rule), {"weight_decay", *options.weight_decay});
  std::vector<train::Slot> slots;
  if (options.use_ema) slots.push_back({kAverage});
  if (options.gradient_accumulation_steps) slots.push_back({kSumOfGradients});
  if (!slots.empty()) rule = train::WithSlots(std::move(rule), std::move(slots));
  optimizer_ = std::make_unique<train::Optimizer>(options.name, learning_rate_, std::move(rule), updates_);
}

Node* GraphOptimizer::Apply(const std::vector<train::GradientAndVariable>& given) {
  const std::vector<train::GradientAndVariable> gradients = Unscaled(given, options_.loss_scale_factor);
  Node* update = nullptr;
  if (!options_.use_ema && !options_.gradient_accumulation_steps) {
    update = optimizer_->ApplyGradients(Clip(gradients), iterations_);
  } else {
    update = options_.gradient_accumulation_steps ? Accumulate(gradients) : optimizer_->ApplyGradients(Clip(gradients));
    if (options_.use_ema) update = UpdateAverages(update, gradients);
    const ControlDependencies after(update->graph(), {update});
    update = iterations_.AssignAdd(int64_t{1});
  }
  CollectSlots(gradients);
  if (!number_in_files_.valid()) return update;
  return ops::Group(update->graph(), {update, number_in_files_.Assign(next_number_in_files_)}, "update");
}

void GraphOptimizer::CollectSlots(const std::vector<train::GradientAndVariable>& gradients) {
  const std::vector<ops::Variable>& saved = optimizer_->saved_variables();
  if (saved.size() == collected_) return;
  collected_ = saved.size();
  slots_.clear();
  struct Owner {
    ops::Variable whole;
    std::string slot;
  };
  std::map<VariableInfo*, Owner> owners;  // of the slots of parts
  const std::vector<std::string> names = optimizer_->slot_names();
  for (const train::GradientAndVariable& pair : gradients) {
    const ops::Variable whole = WholeOf(pair.variable);
    if (whole == pair.variable) continue;
    for (const std::string& name : names) {
      if (const ops::Variable slot = optimizer_->slot(pair.variable, name); slot.valid()) {
        owners[slot.info()] = {whole, name};
      }
    }
  }
  std::set<std::pair<VariableInfo*, std::string>> done;
  for (const ops::Variable& slot : saved) {
    const auto owner = owners.find(slot.info());
    if (owner == owners.end()) {
      slots_.push_back(slot);
      continue;
    }
    const auto& [whole, name] = owner->second;
    if (done.emplace(whole.info(), name).second) slots_.push_back(SlotOfParts(*optimizer_, whole, name));
  }
}

std::vector<ops::Variable> GraphOptimizer::variables() const {
  std::vector<ops::Variable> all = {iterations_};
  if (rate_variable_.valid()) all.push_back(rate_variable_);
  all.insert(all.end(), slots_.begin(), slots_.end());
  if (number_in_files_.valid() && !slots_.empty()) all.push_back(number_in_files_);
  return all;
}

std::vector<train::GradientAndVariable> GraphOptimizer::Clip(std::vector<train::GradientAndVariable> pairs) const {
  if (!options_.clipnorm && !options_.clipvalue && !options_.global_clipnorm) return pairs;
  std::vector<Gradient> gradients;
  for (train::GradientAndVariable& pair : pairs) {
    // The norm counts each row once.
    if (pair.gradient.is_sparse()) pair.gradient = train::SumRepeatedRows(pair.gradient);
    gradients.push_back(pair.gradient);
  }
  if (options_.global_clipnorm) {
    gradients = ops::ClipByGlobalNorm(gradients, static_cast<float>(*options_.global_clipnorm)).gradients;
  }
  if (options_.clipnorm) gradients = ClippedByNorm(pairs, gradients, static_cast<float>(*options_.clipnorm));
  for (size_t i = 0; i < pairs.size(); ++i) {
    Gradient& gradient = gradients[i];
    if (gradient.exists() && options_.clipvalue) {
      const Output limit = ops::ScalarLike(gradient.values, *options_.clipvalue);
      gradient.values = ops::ClipByValue(gradient.values, -limit, limit);
    }
    pairs[i].gradient = gradient;
  }
  return pairs;
}

Optimizer::Optimizer(std::string class_name, CommonOptions options, train::UpdateRulePtr rule,
                     ConfigValue::Object config)
    : class_name_(std::move(class_name)),
      options_(std::move(options)),
      rule_(std::move(rule)),
      config_(std::move(config)) {}

std::unique_ptr<GraphOptimizer> Optimizer::Make(Graph& graph, bool several_workers) const {
  return std::make_unique<GraphOptimizer>(graph, options_, rule_, several_workers);
}

ConfigValue Optimizer::Serialized() const {
  if (class_name_.empty()) {
    throw UnimplementedError(
        StrCat("[keras/optimizer] '", name(), "' is an optimizer of the program's own, which a file cannot describe"));
  }
  const LearningRateSchedulePtr& schedule = options_.learning_rate.schedule();
  ConfigValue::Object config = {
      {"name", options_.name},
      {"learning_rate", schedule ? schedule->Serialized() : ConfigValue(options_.learning_rate.value())},
      {"weight_decay", options_.weight_decay},
      {"clipnorm", options_.clipnorm},
      {"global_clipnorm", options_.global_clipnorm},
      {"clipvalue", options_.clipvalue},
      {"use_ema", options_.use_ema},
      {"ema_momentum", options_.ema_momentum},
      {"ema_overwrite_frequency", options_.ema_overwrite_frequency},
      {"loss_scale_factor", options_.loss_scale_factor},
      {"gradient_accumulation_steps", options_.gradient_accumulation_steps},
  };
  config.insert(config.end(), config_.begin(), config_.end());
  return SerializedObject("keras.optimizers", class_name_, std::move(config));
}

}  // namespace cohort::keras
