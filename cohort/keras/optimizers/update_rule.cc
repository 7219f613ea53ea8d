// The common part of Keras's optimizers: variables, clipping, weight decay and the order of updates. RuleGraphOptimizer
// is an optimizer of train/ whose slots and updates come from an UpdateRule. RuleOptimizer is its description.
#include "cohort/keras/optimizers/update_rule.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/clip.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/training.h"

namespace cohort::keras {
namespace {

using train::GradientAndVariable;

// An optimizer of train/ whose slots and updates follow from a rule, with Keras's variables, clipping and weight decay.
class RuleGraphOptimizer final : public GraphOptimizer, private train::Optimizer {
 public:
  RuleGraphOptimizer(Graph& graph, const CommonOptions& common, std::shared_ptr<const UpdateRule> rule)
      : train::Optimizer(common.name), common_(common), rule_(std::move(rule)) {
    const NameScope scope(graph, common.name);
    iterations_ = ops::Variable(graph, Tensor::Scalar(int64_t{0}), {.name = "iteration", .trainable = false});
    if (const LearningRateSchedulePtr& schedule = common.learning_rate.schedule()) {
      learning_rate_ = schedule->At(iterations_.value());
      if (learning_rate_.dtype() != DType::kFloat32) learning_rate_ = ops::Cast(learning_rate_, DType::kFloat32);
    } else {
      const auto rate = static_cast<float>(common.learning_rate.value());
      rate_variable_ = ops::Variable(graph, Tensor::Scalar(rate), {.name = "learning_rate", .trainable = false});
      learning_rate_ = rate_variable_.value();
    }
    shared_.emplace("learning_rate", train::Hyperparameter(learning_rate_));
  }

  Node* Apply(const std::vector<GradientAndVariable>& gradients) override {
    if (applied_) {
      throw FailedPreconditionError(
          StrCat("[keras/optimizer] expected one call of Apply; '", common_.name, "' got a second one"));
    }
    applied_ = true;
    return ApplyGradients(Clip(gradients), iterations_);
  }
  ops::Variable iterations() const override { return iterations_; }
  ops::Variable learning_rate_variable() const override { return rate_variable_; }
  Output learning_rate() const override { return learning_rate_; }
  std::vector<ops::Variable> variables() const override {
    std::vector<ops::Variable> all = {iterations_};
    if (rate_variable_.valid()) all.push_back(rate_variable_);
    all.insert(all.end(), keras_slots_.begin(), keras_slots_.end());
    return all;
  }

 private:
  void CreateSlots(const std::vector<ops::Variable>& variables) override {
    for (const std::vector<Slot>& group : rule_->slots()) {
      for (const ops::Variable& variable : variables) {
        for (const Slot& slot : group) {
          MakeSlot(variable, slot.name, slot.initial);
          if (slot.keras_has_it) keras_slots_.push_back(this->slot(variable, slot.name));
        }
      }
    }
  }
  Node* ApplyDense(Output gradient, const ops::Variable& variable) override {
    return Update(Gradient(CastTo(gradient, variable)), variable);
  }
  Node* ApplySparse(const Gradient& gradient, const ops::Variable& variable) override {
    if (!rule_->has_sparse()) return ApplyDense(ToDense(gradient), variable);
    return Update(Gradient(CastTo(gradient.values, variable), gradient.indices, gradient.dense_shape), variable);
  }
  // Makes the gradient dense, which also sums repeated rows.
  bool AllowsRepeats() const override { return !rule_->has_sparse(); }

  static Output CastTo(Output gradient, const ops::Variable& variable) {
    return gradient.dtype() == variable.dtype() ? gradient : ops::Cast(gradient, variable.dtype());
  }

  Node* Update(const Gradient& gradient, const ops::Variable& variable) {
    std::map<std::string, Output> slots;
    for (const std::vector<Slot>& group : rule_->slots()) {
      for (const Slot& slot : group) slots[slot.name] = SlotHandle(variable, slot.name);
    }
    const UpdateArgs args(variable, gradient, std::move(slots), iterations_.value(), &shared_);
    std::vector<Node*> before;
    if (common_.weight_decay) {
      const Output rate = args.Number("weight_decay", *common_.weight_decay);
      // Waits for the gradient, which must be computed with the old weights.
      const ControlDependencies after(variable.graph(), {gradient.values.node});
      before.push_back(ops::ResourceApplyWeightDecay(variable.handle(), ops::Mul(rate, args.learning_rate())));
    }
    const ControlDependencies after(variable.graph(), before);
    return gradient.is_sparse() ? rule_->Sparse(args) : rule_->Dense(args);
  }

  bool clips() const { return common_.clipnorm || common_.clipvalue || common_.global_clipnorm; }

  std::vector<GradientAndVariable> Clip(std::vector<GradientAndVariable> pairs) const {
    if (!clips()) return pairs;
    std::vector<Gradient> gradients;
    for (GradientAndVariable& pair : pairs) {
      // The norm counts each row once.
      if (pair.gradient.is_sparse()) pair.gradient = train::SumRepeatedRows(pair.gradient);
      gradients.push_back(pair.gradient);
    }
    if (common_.global_clipnorm) {
      gradients = ops::ClipByGlobalNorm(gradients, static_cast<float>(*common_.global_clipnorm)).gradients;
    }
    for (size_t i = 0; i < pairs.size(); ++i) {
      Gradient& gradient = gradients[i];
      if (gradient.exists() && common_.clipnorm) {
        gradient.values = ops::ClipByNorm(gradient.values, static_cast<float>(*common_.clipnorm));
      } else if (gradient.exists() && common_.clipvalue) {
        const Output limit = ops::ScalarLike(gradient.values, *common_.clipvalue);
        gradient.values = ops::ClipByValue(gradient.values, -limit, limit);
      }
      pairs[i].gradient = gradient;
    }
    return pairs;
  }

  const CommonOptions common_;
  const std::shared_ptr<const UpdateRule> rule_;
  UpdateArgs::Shared shared_;
  std::vector<ops::Variable> keras_slots_;
  ops::Variable iterations_;
  ops::Variable rate_variable_;
  Output learning_rate_;
  bool applied_ = false;
};

class RuleOptimizer final : public Optimizer {
 public:
  RuleOptimizer(std::string class_name, CommonOptions common, std::shared_ptr<const UpdateRule> rule)
      : Optimizer(common.name),
        class_name_(std::move(class_name)),
        common_(std::move(common)),
        rule_(std::move(rule)) {}
  std::unique_ptr<GraphOptimizer> Make(Graph& graph) const override {
    return std::make_unique<RuleGraphOptimizer>(graph, common_, rule_);
  }

  ConfigValue Serialized() const override {
    const LearningRateSchedulePtr& schedule = common_.learning_rate.schedule();
    ConfigValue::Object config = {
        {"name", common_.name},
        {"learning_rate", schedule ? schedule->Serialized() : ConfigValue(common_.learning_rate.value())},
        {"weight_decay", common_.weight_decay},
        {"clipnorm", common_.clipnorm},
        {"global_clipnorm", common_.global_clipnorm},
        {"clipvalue", common_.clipvalue},
        {"use_ema", false},
        {"ema_momentum", 0.99},
        {"ema_overwrite_frequency", nullptr},
        {"loss_scale_factor", nullptr},
        {"gradient_accumulation_steps", nullptr},
    };
    for (auto& option : rule_->config()) config.push_back(std::move(option));
    return SerializedObject("keras.optimizers", class_name_, std::move(config));
  }

 private:
  const std::string class_name_;
  const CommonOptions common_;
  const std::shared_ptr<const UpdateRule> rule_;
};

}  // namespace

ConfigValue Optimizer::Serialized() const {
  throw UnimplementedError(
      StrCat("[keras/optimizer] '", name_, "' is an optimizer of the program's own, which a file cannot describe"));
}

Output UpdateArgs::Number(const std::string& name, double value) const {
  return shared_->try_emplace(name, train::Hyperparameter(value)).first->second.For(variable_, name);
}

Output UpdateArgs::Power(const std::string& name, double base) const {
  auto found = shared_->find(name);
  if (found == shared_->end()) {
    const ColocateWith nowhere(variable_.graph(), nullptr);
    const Output step = ops::Cast(iterations_, DType::kFloat32) + 1.0f;
    found = shared_->emplace(name, train::Hyperparameter(ops::Pow(ops::ScalarLike(step, base), step))).first;
  }
  return found->second.For(variable_, name);
}

void Require(bool holds, const std::string& optimizer, const char* what, double got) {
  if (holds) return;
  throw InvalidArgumentError(StrCat("[keras/optimizer] ", optimizer, " expected ", what, "; got ", got));
}

OptimizerPtr MakeOptimizer(const std::string& class_name, CommonOptions common,
                           std::shared_ptr<const UpdateRule> rule) {
  const std::pair<const char*, std::optional<double>> clips[] = {
      {"clipnorm > 0", common.clipnorm},
      {"clipvalue > 0", common.clipvalue},
      {"global_clipnorm > 0", common.global_clipnorm},
  };
  int set = 0;
  for (const auto& [what, value] : clips) {
    if (!value) continue;
    ++set;
    Require(*value > 0.0, common.name, what, *value);
  }
  Require(set < 2, common.name, "at most one of clipnorm, clipvalue and global_clipnorm", set);
  if (common.weight_decay) {
    Require(*common.weight_decay >= 0.0, common.name, "weight_decay of at least 0", *common.weight_decay);
  }
  if (common.learning_rate.schedule() == nullptr) {
    const double rate = common.learning_rate.value();
    Require(rate >= 0.0, common.name, "learning_rate of at least 0", rate);
  }
  return std::make_shared<RuleOptimizer>(class_name, std::move(common), std::move(rule));
}

}  // namespace cohort::keras
