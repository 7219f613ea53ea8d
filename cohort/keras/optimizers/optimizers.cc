// The optimizers of optimizer.h: Keras's arguments and names for the rules of train/update_rules.h. For each there is a
// function that reads its options from a file, and a row in the table of names (OptimizerTable).
#include <algorithm>
#include <cctype>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/config_reader.h"
#include "cohort/keras/files/serialization.h"
#include "cohort/keras/names.h"
#include "cohort/keras/optimizers/optimizer.h"
#include "cohort/keras/optimizers/own_slots.h"
#include "cohort/train/update_rules.h"

namespace cohort::keras {
namespace {

// Throws InvalidArgumentError "[keras/optimizer] NAME expected WHAT ..." if `holds` is false.
void Require(bool holds, const std::string& optimizer, const char* what, double got) {
  if (holds) return;
  throw InvalidArgumentError(StrCat("[keras/optimizer] ", optimizer, " expected ", what, "; got ", got));
}

bool IsShare(double x) { return x >= 0.0 && x < 1.0; }

void CheckCommonOptions(const CommonOptions& options) {
  const std::pair<const char*, std::optional<double>> clips[] = {
      {"clipnorm > 0", options.clipnorm},
      {"clipvalue > 0", options.clipvalue},
      {"global_clipnorm > 0", options.global_clipnorm},
  };
  int set = 0;
  for (const auto& [what, value] : clips) {
    if (!value) continue;
    ++set;
    Require(*value > 0.0, options.name, what, *value);
  }
  Require(set < 2, options.name, "at most one of clipnorm, clipvalue and global_clipnorm", set);
  if (options.weight_decay) {
    Require(*options.weight_decay >= 0.0, options.name, "weight_decay of at least 0", *options.weight_decay);
  }
  if (options.use_ema) {
    const double momentum = options.ema_momentum;
    Require(momentum >= 0.0 && momentum <= 1.0, options.name, "ema_momentum in [0, 1]", momentum);
  }
  const auto require_least = [&](const std::optional<int64_t>& value, int64_t least, const char* what) {
    if (value) Require(*value >= least, options.name, what, static_cast<double>(*value));
  };
  require_least(options.ema_overwrite_frequency, 1, "ema_overwrite_frequency of at least 1");
  require_least(options.gradient_accumulation_steps, 2, "gradient_accumulation_steps of at least 2");
  if (options.loss_scale_factor) {
    Require(*options.loss_scale_factor > 0.0, options.name, "loss_scale_factor > 0", *options.loss_scale_factor);
  }
  if (options.learning_rate.schedule() == nullptr) {
    const double rate = options.learning_rate.value();
    Require(rate >= 0.0, options.name, "learning_rate of at least 0", rate);
  }
}

template <typename Options>
OptimizerPtr MakeOptimizer(const char* class_name, const char* default_name, const Options& options,
                           train::UpdateRulePtr rule, ConfigValue::Object config) {
  const CommonOptions common = {.learning_rate = options.learning_rate,
                                .weight_decay = options.weight_decay,
                                .clipnorm = options.clipnorm,
                                .clipvalue = options.clipvalue,
                                .global_clipnorm = options.global_clipnorm,
                                .use_ema = options.use_ema,
                                .ema_momentum = options.ema_momentum,
                                .ema_overwrite_frequency = options.ema_overwrite_frequency,
                                .loss_scale_factor = options.loss_scale_factor,
                                .gradient_accumulation_steps = options.gradient_accumulation_steps,
                                .name = options.name.empty() ? default_name : options.name};
  CheckCommonOptions(common);
  return std::make_shared<Optimizer>(class_name, common, std::move(rule), std::move(config));
}

void CheckBetas(const char* optimizer, double beta_1, double beta_2) {
  Require(IsShare(beta_1), optimizer, "beta_1 in [0, 1)", beta_1);
  Require(IsShare(beta_2), optimizer, "beta_2 in [0, 1)", beta_2);
}

OptimizerPtr MakeAdam(const AdamOptions& options, const char* class_name, const char* name) {
  CheckBetas(name, options.beta_1, options.beta_2);
  if (options.lazy && options.amsgrad) {
    throw InvalidArgumentError(StrCat("[keras/", name, "] expected one of lazy and amsgrad; got both"));
  }
  const train::NamedNumber beta_1 = {"beta_1", options.beta_1}, beta_2 = {"beta_2", options.beta_2};
  const train::NamedNumber epsilon = {"epsilon", options.epsilon};
  ConfigValue::Object config = {{"beta_1", options.beta_1},
                                {"beta_2", options.beta_2},
                                {"epsilon", options.epsilon},
                                {"amsgrad", options.amsgrad}};
  if (options.lazy) config.emplace_back("lazy", true);  // Keras does not know it
  return MakeOptimizer(class_name, name, options,
                       options.lazy ? train::LazyAdamRule(beta_1, beta_2, epsilon)
                                    : train::AdamRule(beta_1, beta_2, epsilon, options.amsgrad),
                       std::move(config));
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
  reader.Read("use_ema", options.use_ema);
  reader.Read("ema_momentum", options.ema_momentum);
  reader.Read("ema_overwrite_frequency", options.ema_overwrite_frequency);
  reader.Read("loss_scale_factor", options.loss_scale_factor);
  reader.Read("gradient_accumulation_steps", options.gradient_accumulation_steps);
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

template <typename Options>
Options ReadBetas(ConfigReader& reader) {
  auto options = ReadOptimizerOptions<Options>(reader);
  reader.Read("beta_1", options.beta_1);
  reader.Read("beta_2", options.beta_2);
  return options;
}

OptimizerPtr ReadNadam(ConfigReader& reader) {
  auto options = ReadBetas<NadamOptions>(reader);
  reader.Read("epsilon", options.epsilon);
  return Nadam(options);
}

OptimizerPtr ReadAdamax(ConfigReader& reader) {
  auto options = ReadBetas<AdamaxOptions>(reader);
  reader.Read("epsilon", options.epsilon);
  return Adamax(options);
}

OptimizerPtr ReadAdadelta(ConfigReader& reader) {
  auto options = ReadOptimizerOptions<AdadeltaOptions>(reader);
  reader.Read("rho", options.rho);
  reader.Read("epsilon", options.epsilon);
  return Adadelta(options);
}

AdamOptions ReadAdam(ConfigReader& reader) {
  auto options = ReadBetas<AdamOptions>(reader);
  reader.Read("epsilon", options.epsilon);
  reader.Read("amsgrad", options.amsgrad);
  reader.Read("lazy", options.lazy);
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
                    {"Ftrl", {[] { return Ftrl(); }, ReadFtrl}},
                    {"Nadam", {[] { return Nadam(); }, ReadNadam}},
                    {"Adamax", {[] { return Adamax(); }, ReadAdamax}},
                    {"Lion", {[] { return Lion(); }, [](ConfigReader& r) { return Lion(ReadBetas<LionOptions>(r)); }}},
                    {"Adadelta", {[] { return Adadelta(); }, ReadAdadelta}}});
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
  // With a momentum, every row changes in each step.
  const train::UpdateRulePtr rule = options.momentum == 0.0
                                        ? train::GradientDescentRule(train::SparseForm::kUniqueRows)
                                        : train::KerasMomentumRule({"momentum", options.momentum}, options.nesterov);
  return MakeOptimizer("SGD", "SGD", options, rule, {{"momentum", options.momentum}, {"nesterov", options.nesterov}});
}

OptimizerPtr Adagrad(const AdagradOptions& options) {
  Require(options.initial_accumulator_value >= 0.0, "Adagrad", "initial_accumulator_value of at least 0",
          options.initial_accumulator_value);
  return MakeOptimizer(
      "Adagrad", "adagrad", options,
      train::KerasAdagradRule(options.initial_accumulator_value, {"epsilon", options.epsilon}),
      {{"initial_accumulator_value", options.initial_accumulator_value}, {"epsilon", options.epsilon}});
}

OptimizerPtr Adam(const AdamOptions& options) { return MakeAdam(options, "Adam", "adam"); }

OptimizerPtr AdamW(const AdamOptions& options) {
  AdamOptions decaying = options;
  if (!decaying.weight_decay) decaying.weight_decay = 0.004;
  return MakeAdam(decaying, "AdamW", "adamw");
}

OptimizerPtr Nadam(const NadamOptions& options) {
  CheckBetas("Nadam", options.beta_1, options.beta_2);
  return MakeOptimizer(
      "Nadam", "nadam", options,
      train::NadamRule({"beta_1", options.beta_1}, {"beta_2", options.beta_2}, {"epsilon", options.epsilon}),
      {{"beta_1", options.beta_1}, {"beta_2", options.beta_2}, {"epsilon", options.epsilon}});
}

OptimizerPtr Adamax(const AdamaxOptions& options) {
  CheckBetas("Adamax", options.beta_1, options.beta_2);
  return MakeOptimizer(
      "Adamax", "adamax", options,
      train::AdamaxRule({"beta_1", options.beta_1}, {"beta_2", options.beta_2}, {"epsilon", options.epsilon}),
      {{"beta_1", options.beta_1}, {"beta_2", options.beta_2}, {"epsilon", options.epsilon}});
}

OptimizerPtr Lion(const LionOptions& options) {
  Require(options.beta_1 > 0.0 && options.beta_1 <= 1.0, "Lion", "beta_1 in (0, 1]", options.beta_1);
  Require(options.beta_2 >= 0.0 && options.beta_2 <= 1.0, "Lion", "beta_2 in [0, 1]", options.beta_2);
  return MakeOptimizer("Lion", "lion", options, train::LionRule({"beta_1", options.beta_1}, {"beta_2", options.beta_2}),
                       {{"beta_1", options.beta_1}, {"beta_2", options.beta_2}});
}

OptimizerPtr Adadelta(const AdadeltaOptions& options) {
  Require(IsShare(options.rho), "Adadelta", "rho in [0, 1)", options.rho);
  return MakeOptimizer("Adadelta", "adadelta", options,
                       train::AdadeltaRule({"rho", options.rho}, {"epsilon", options.epsilon}),
                       {{"rho", options.rho}, {"epsilon", options.epsilon}});
}

OptimizerPtr RMSprop(const RMSpropOptions& options) {
  Require(IsShare(options.rho), "RMSprop", "rho in [0, 1)", options.rho);
  Require(options.momentum >= 0.0 && options.momentum <= 1.0, "RMSprop", "momentum in [0, 1]", options.momentum);
  // The op needs the momentum's slot in any case, but Keras has none for a momentum of 0. Keras's rule changes every
  // row.
  train::RMSPropForm form = {.decay = {"rho", options.rho},
                             .momentum = {"momentum", options.momentum},
                             .epsilon = {"epsilon", options.epsilon},
                             .centered = options.centered,
                             .slots = {{{"rms"}}, {{"momentum", 0.0, options.momentum > 0.0}}},
                             .sparse_form = train::SparseForm::kDense};
  if (options.centered) form.slots.push_back({{"mg"}});
  return MakeOptimizer("RMSprop", "rmsprop", options, train::RMSPropRule(form),
                       {{"rho", options.rho},
                        {"momentum", options.momentum},
                        {"epsilon", options.epsilon},
                        {"centered", options.centered}});
}

OptimizerPtr Ftrl(const FtrlOptions& options) {
  const double l1 = options.l1_regularization_strength, l2 = options.l2_regularization_strength;
  const double l2_shrinkage = options.l2_shrinkage_regularization_strength;
  Require(options.learning_rate_power <= 0.0, "Ftrl", "learning_rate_power of at most 0", options.learning_rate_power);
  Require(options.initial_accumulator_value >= 0.0, "Ftrl", "initial_accumulator_value of at least 0",
          options.initial_accumulator_value);
  Require(l1 >= 0.0, "Ftrl", "l1_regularization_strength of at least 0", l1);
  Require(l2 >= 0.0, "Ftrl", "l2_regularization_strength of at least 0", l2);
  Require(l2_shrinkage >= 0.0, "Ftrl", "l2_shrinkage_regularization_strength of at least 0", l2_shrinkage);
  return MakeOptimizer("Ftrl", "ftrl", options,
                       train::FtrlRule(options.initial_accumulator_value,
                                       {.l1 = {"l1", l1},
                                        .l2 = {"l2", l2},
                                        .learning_rate_power = {"lr_power", options.learning_rate_power},
                                        .l2_shrinkage = {"l2_shrinkage", l2_shrinkage},
                                        .half_beta = {"half_beta", options.beta / 2.0}},
                                       train::SparseForm::kDense),
                       {{"learning_rate_power", options.learning_rate_power},
                        {"initial_accumulator_value", options.initial_accumulator_value},
                        {"l1_regularization_strength", l1},
                        {"l2_regularization_strength", l2},
                        {"l2_shrinkage_regularization_strength", l2_shrinkage},
                        {"beta", options.beta}});
}

OptimizerPtr OptimizerFromRule(train::UpdateRulePtr rule, const CommonOptions& options) {
  if (rule == nullptr || options.name.empty()) {
    throw InvalidArgumentError(StrCat("[keras/optimizer] expected an update rule and a name; got ",
                                      rule == nullptr ? "no rule" : "a rule", " and the name '", options.name, "'"));
  }
  CheckCommonOptions(options);
  for (const std::vector<train::Slot>& group : rule->slots()) {
    for (const train::Slot& slot : group) {
      const bool taken = (options.use_ema && slot.name == kAverage) ||
                         (options.gradient_accumulation_steps && slot.name == kSumOfGradients);
      if (!taken) continue;
      throw InvalidArgumentError(
          StrCat("[keras/optimizer] expected a rule without a slot '", slot.name, "', which ",
                 options.use_ema && slot.name == kAverage ? "use_ema" : "gradient_accumulation_steps",
                 " adds; got one in '", options.name, "'"));
    }
  }
  return std::make_shared<Optimizer>("", options, std::move(rule), ConfigValue::Object());
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
