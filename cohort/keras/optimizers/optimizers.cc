// The optimizers of optimizer.h. For each there is an update rule, a function that reads its options from a file, and a
// row in the table of names (OptimizerTable).
#include <algorithm>
#include <cctype>

#include "cohort/keras/files/config_reader.h"
#include "cohort/keras/files/serialization.h"
#include "cohort/keras/names.h"
#include "cohort/keras/optimizers/optimizer.h"
#include "cohort/keras/optimizers/update_rule.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/state.h"
#include "cohort/ops/training.h"

namespace cohort::keras {
namespace {

class SgdRule final : public UpdateRule {
 public:
  explicit SgdRule(const SGDOptions& options) : momentum_(options.momentum), nesterov_(options.nesterov) {}
  std::vector<std::vector<Slot>> slots() const override {
    if (momentum_ == 0.0) return {};
    return {{{"momentum"}}};
  }
  Node* Dense(const UpdateArgs& a) const override {
    if (momentum_ == 0.0) return ops::ResourceApplyGradientDescent(a.var(), a.learning_rate(), a.gradient().values);
    return ops::ResourceApplyKerasMomentum(a.var(), a.slot("momentum"), a.learning_rate(), a.gradient().values,
                                           a.Number("momentum", momentum_), nesterov_);
  }
  // With a momentum, every row changes in each step.
  bool has_sparse() const override { return momentum_ == 0.0; }
  Node* Sparse(const UpdateArgs& a) const override {
    return ops::ResourceScatterSub(a.var(), a.gradient().indices, ops::Mul(a.gradient().values, a.learning_rate()));
  }
  ConfigValue::Object config() const override { return {{"momentum", momentum_}, {"nesterov", nesterov_}}; }

 private:
  const double momentum_;
  const bool nesterov_;
};

class AdagradRule final : public UpdateRule {
 public:
  explicit AdagradRule(const AdagradOptions& options)
      : initial_(options.initial_accumulator_value), epsilon_(options.epsilon) {}
  std::vector<std::vector<Slot>> slots() const override { return {{{"accumulator", initial_}}}; }
  Node* Dense(const UpdateArgs& a) const override {
    return ops::ResourceApplyKerasAdagrad(a.var(), a.slot("accumulator"), a.learning_rate(),
                                          a.Number("epsilon", epsilon_), a.gradient().values);
  }
  bool has_sparse() const override { return true; }
  Node* Sparse(const UpdateArgs& a) const override {
    return ops::ResourceSparseApplyKerasAdagrad(a.var(), a.slot("accumulator"), a.learning_rate(),
                                                a.Number("epsilon", epsilon_), a.gradient().values,
                                                a.gradient().indices);
  }
  ConfigValue::Object config() const override {
    return {{"initial_accumulator_value", initial_}, {"epsilon", epsilon_}};
  }

 private:
  const double initial_;
  const double epsilon_;
};

class AdamRule final : public UpdateRule {
 public:
  explicit AdamRule(const AdamOptions& options) : options_(options) {}
  std::vector<std::vector<Slot>> slots() const override {
    if (options_.amsgrad) return {{{"momentum"}, {"velocity"}}, {{"velocity_hat"}}};
    return {{{"momentum"}, {"velocity"}}};
  }
  Node* Dense(const UpdateArgs& a) const override {
    const ops::AdamScalars scalars = {a.Power("beta_1_power", options_.beta_1),
                                      a.Power("beta_2_power", options_.beta_2),
                                      a.learning_rate(),
                                      a.Number("beta_1", options_.beta_1),
                                      a.Number("beta_2", options_.beta_2),
                                      a.Number("epsilon", options_.epsilon)};
    if (options_.amsgrad) {
      return ops::ResourceApplyAdamWithAmsgrad(a.var(), a.slot("momentum"), a.slot("velocity"), a.slot("velocity_hat"),
                                               scalars, a.gradient().values);
    }
    return ops::ResourceApplyAdam(a.var(), a.slot("momentum"), a.slot("velocity"), scalars, a.gradient().values);
  }
  ConfigValue::Object config() const override {
    return {{"beta_1", options_.beta_1},
            {"beta_2", options_.beta_2},
            {"epsilon", options_.epsilon},
            {"amsgrad", options_.amsgrad}};
  }

 private:
  const AdamOptions options_;
};

class RmspropRule final : public UpdateRule {
 public:
  explicit RmspropRule(const RMSpropOptions& options) : options_(options) {}
  // The op needs the momentum's slot in any case.
  std::vector<std::vector<Slot>> slots() const override {
    std::vector<std::vector<Slot>> all = {{{"velocity"}}, {{"momentum", 0.0, options_.momentum > 0.0}}};
    if (options_.centered) all.push_back({{"average_gradient"}});
    return all;
  }
  Node* Dense(const UpdateArgs& a) const override {
    const ops::RMSPropScalars scalars = {a.learning_rate(), a.Number("rho", options_.rho),
                                         a.Number("momentum", options_.momentum),
                                         a.Number("epsilon", options_.epsilon)};
    if (options_.centered) {
      return ops::ResourceApplyCenteredRMSProp(a.var(), a.slot("average_gradient"), a.slot("velocity"),
                                               a.slot("momentum"), scalars, a.gradient().values);
    }
    return ops::ResourceApplyRMSProp(a.var(), a.slot("velocity"), a.slot("momentum"), scalars, a.gradient().values);
  }
  ConfigValue::Object config() const override {
    return {{"rho", options_.rho},
            {"momentum", options_.momentum},
            {"epsilon", options_.epsilon},
            {"centered", options_.centered}};
  }

 private:
  const RMSpropOptions options_;
};

class FtrlRule final : public UpdateRule {
 public:
  explicit FtrlRule(const FtrlOptions& options) : options_(options) {}
  std::vector<std::vector<Slot>> slots() const override {
    return {{{"accumulator", options_.initial_accumulator_value}, {"linear"}}};
  }
  Node* Dense(const UpdateArgs& a) const override {
    const Output lr = a.learning_rate();
    Output l2 = a.Number("l2", options_.l2_regularization_strength);
    if (options_.beta != 0.0) l2 = ops::Add(l2, ops::Div(a.Number("half_beta", options_.beta / 2.0), lr));
    const ops::FtrlScalars scalars = {lr, a.Number("l1", options_.l1_regularization_strength), l2,
                                      a.Number("lr_power", options_.learning_rate_power)};
    return ops::ResourceApplyFtrlV2(a.var(), a.slot("accumulator"), a.slot("linear"), a.gradient().values, scalars,
                                    a.Number("l2_shrinkage", options_.l2_shrinkage_regularization_strength));
  }
  ConfigValue::Object config() const override {
    return {{"learning_rate_power", options_.learning_rate_power},
            {"initial_accumulator_value", options_.initial_accumulator_value},
            {"l1_regularization_strength", options_.l1_regularization_strength},
            {"l2_regularization_strength", options_.l2_regularization_strength},
            {"l2_shrinkage_regularization_strength", options_.l2_shrinkage_regularization_strength},
            {"beta", options_.beta}};
  }

 private:
  const FtrlOptions options_;
};

bool IsShare(double x) { return x >= 0.0 && x < 1.0; }

OptimizerPtr MakeAdam(const AdamOptions& options, const char* class_name, const char* name) {
  Require(IsShare(options.beta_1), name, "beta_1 in [0, 1)", options.beta_1);
  Require(IsShare(options.beta_2), name, "beta_2 in [0, 1)", options.beta_2);
  return MakeOptimizer(class_name, CommonOf(options, name), std::make_shared<AdamRule>(options));
}

// Reads the options that all optimizers have in files.
template <typename Options>
Options ReadOptimizerOptions(ConfigReader& reader) {
  Options options;
  reader.Read("name", options.name);
  reader.ReadBy("learning_rate", [&](const ConfigValue& value) {
    options.learning_rate =
        value.is_object() ? LearningRate(DeserializeSchedule(value)) : LearningRate(value.AsDouble());
  });
  reader.Read("weight_decay", options.weight_decay);
  reader.Read("clipnorm", options.clipnorm);
  reader.Read("global_clipnorm", options.global_clipnorm);
  reader.Read("clipvalue", options.clipvalue);
  reader.OnlyDefault("use_ema", false);
  reader.Ignore("ema_momentum");
  reader.Ignore("ema_overwrite_frequency");
  reader.OnlyDefault("loss_scale_factor", nullptr);
  reader.OnlyDefault("gradient_accumulation_steps", nullptr);
  reader.Ignore("jit_compile");  // of files of older versions
  reader.Ignore("is_legacy_optimizer");
  return options;
}

OptimizerPtr ReadSgd(ConfigReader& reader) {
  auto options = ReadOptimizerOptions<SGDOptions>(reader);
  reader.Read("momentum", options.momentum);
  reader.Read("nesterov", options.nesterov);
  return SGD(options);
}

OptimizerPtr ReadAdagrad(ConfigReader& reader) {
  auto options = ReadOptimizerOptions<AdagradOptions>(reader);
  reader.Read("initial_accumulator_value", options.initial_accumulator_value);
  reader.Read("epsilon", options.epsilon);
  return Adagrad(options);
}

AdamOptions ReadAdam(ConfigReader& reader) {
  auto options = ReadOptimizerOptions<AdamOptions>(reader);
  reader.Read("beta_1", options.beta_1);
  reader.Read("beta_2", options.beta_2);
  reader.Read("epsilon", options.epsilon);
  reader.Read("amsgrad", options.amsgrad);
  return options;
}

OptimizerPtr ReadRmsprop(ConfigReader& reader) {
  auto options = ReadOptimizerOptions<RMSpropOptions>(reader);
  reader.Read("rho", options.rho);
  reader.Read("momentum", options.momentum);
  reader.Read("epsilon", options.epsilon);
  reader.Read("centered", options.centered);
  return RMSprop(options);
}

OptimizerPtr ReadFtrl(ConfigReader& reader) {
  auto options = ReadOptimizerOptions<FtrlOptions>(reader);
  reader.Read("learning_rate_power", options.learning_rate_power);
  reader.Read("initial_accumulator_value", options.initial_accumulator_value);
  reader.Read("l1_regularization_strength", options.l1_regularization_strength);
  reader.Read("l2_regularization_strength", options.l2_regularization_strength);
  reader.Read("l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength);
  reader.Read("beta", options.beta);
  return Ftrl(options);
}

// An optimizer by its class: with its defaults, and from its form in files.
struct OptimizerMaker {
  OptimizerPtr (*make)();
  OptimizerPtr (*from_config)(ConfigReader& reader);
};
const NameTable<OptimizerMaker>& OptimizerTable() {
  static const NameTable<OptimizerMaker> table(
      "optimizer", {{"SGD", {[] { return SGD(); }, ReadSgd}},
                    {"Adagrad", {[] { return Adagrad(); }, ReadAdagrad}},
                    {"Adam", {[] { return Adam(); }, [](ConfigReader& r) { return Adam(ReadAdam(r)); }}},
                    {"AdamW", {[] { return AdamW(); }, [](ConfigReader& r) { return AdamW(ReadAdam(r)); }}},
                    {"RMSprop", {[] { return RMSprop(); }, ReadRmsprop}},
                    {"Ftrl", {[] { return Ftrl(); }, ReadFtrl}}});
  return table;
}

std::string LowerCase(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace

OptimizerPtr SGD(const SGDOptions& options) {
  Require(options.momentum >= 0.0 && options.momentum <= 1.0, "SGD", "momentum in [0, 1]", options.momentum);
  return MakeOptimizer("SGD", CommonOf(options, "SGD"), std::make_shared<SgdRule>(options));
}

OptimizerPtr Adagrad(const AdagradOptions& options) {
  Require(options.initial_accumulator_value >= 0.0, "Adagrad", "initial_accumulator_value of at least 0",
          options.initial_accumulator_value);
  return MakeOptimizer("Adagrad", CommonOf(options, "adagrad"), std::make_shared<AdagradRule>(options));
}

OptimizerPtr Adam(const AdamOptions& options) { return MakeAdam(options, "Adam", "adam"); }

OptimizerPtr AdamW(const AdamOptions& options) {
  AdamOptions decaying = options;
  if (!decaying.weight_decay) decaying.weight_decay = 0.004;
  return MakeAdam(decaying, "AdamW", "adamw");
}

OptimizerPtr RMSprop(const RMSpropOptions& options) {
  Require(IsShare(options.rho), "RMSprop", "rho in [0, 1)", options.rho);
  Require(options.momentum >= 0.0 && options.momentum <= 1.0, "RMSprop", "momentum in [0, 1]", options.momentum);
  return MakeOptimizer("RMSprop", CommonOf(options, "rmsprop"), std::make_shared<RmspropRule>(options));
}

OptimizerPtr Ftrl(const FtrlOptions& options) {
  Require(options.learning_rate_power <= 0.0, "Ftrl", "learning_rate_power of at most 0", options.learning_rate_power);
  Require(options.initial_accumulator_value >= 0.0, "Ftrl", "initial_accumulator_value of at least 0",
          options.initial_accumulator_value);
  Require(options.l1_regularization_strength >= 0.0, "Ftrl", "l1_regularization_strength of at least 0",
          options.l1_regularization_strength);
  Require(options.l2_regularization_strength >= 0.0, "Ftrl", "l2_regularization_strength of at least 0",
          options.l2_regularization_strength);
  Require(options.l2_shrinkage_regularization_strength >= 0.0, "Ftrl",
          "l2_shrinkage_regularization_strength of at least 0", options.l2_shrinkage_regularization_strength);
  return MakeOptimizer("Ftrl", CommonOf(options, "ftrl"), std::make_shared<FtrlRule>(options));
}

OptimizerPtr OptimizerByName(const std::string& name) {
  for (const std::string& known : OptimizerTable().names()) {
    if (LowerCase(known) == LowerCase(name)) return OptimizerTable().Find(known).make();
  }
  OptimizerTable().Fail(name, OptimizerNames());
}

std::vector<std::string> OptimizerNames() {
  std::vector<std::string> names = OptimizerTable().names();
  std::transform(names.begin(), names.end(), names.begin(), LowerCase);
  return names;
}

OptimizerPtr DeserializeOptimizer(const ConfigValue& value) {
  const std::string name = NameIn(value);
  if (!name.empty()) return OptimizerByName(name);
  ConfigReader reader("optimizer", value);
  OptimizerPtr optimizer = OptimizerTable().Find(reader.class_name()).from_config(reader);
  reader.Finish();
  return optimizer;
}

}  // namespace cohort::keras
