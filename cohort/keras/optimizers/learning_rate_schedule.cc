// Keras's learning-rate schedules: their classes, their form in files, and the functions that describe them. A class
// computes the rate with the functions of train/learning_rate.h.
#include "cohort/keras/optimizers/learning_rate_schedule.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/config_reader.h"
#include "cohort/keras/files/serialization.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/train/learning_rate.h"

namespace cohort::keras {
namespace {

class FunctionSchedule final : public LearningRateSchedule {
 public:
  FunctionSchedule(std::string name, std::function<Output(Output)> at, ConfigValue serialized = {})
      : LearningRateSchedule(std::move(name)), at_(std::move(at)), serialized_(std::move(serialized)) {}
  Output At(Output iterations) const override { return at_(iterations); }
  ConfigValue Serialized() const override {
    return serialized_.is_null() ? LearningRateSchedule::Serialized() : serialized_;
  }

 private:
  const std::function<Output(Output)> at_;
  const ConfigValue serialized_;  // null: not known to Keras
};

LearningRateSchedulePtr KerasSchedule(const char* class_name, ConfigValue::Object config,
                                      std::function<Output(Output)> at, const char* name = nullptr) {
  config.emplace_back("name", name != nullptr ? name : class_name);
  return std::make_shared<FunctionSchedule>(
      class_name, std::move(at), SerializedObject("keras.optimizers.schedules", class_name, std::move(config)));
}

ConfigValue::Object ConfigOf(const ExponentialDecayOptions& options) {
  return {{"initial_learning_rate", options.initial_learning_rate},
          {"decay_steps", options.decay_steps},
          {"decay_rate", options.decay_rate},
          {"staircase", options.staircase}};
}

ExponentialDecayOptions ReadExponential(ConfigReader& reader) {
  ExponentialDecayOptions options = {};
  reader.Ignore("name");
  reader.Read("initial_learning_rate", options.initial_learning_rate);
  reader.Read("decay_steps", options.decay_steps);
  reader.Read("decay_rate", options.decay_rate);
  reader.Read("staircase", options.staircase);
  return options;
}

LearningRateSchedulePtr ReadPolynomial(ConfigReader& reader) {
  PolynomialDecayOptions options = {};
  reader.Ignore("name");
  reader.Read("initial_learning_rate", options.initial_learning_rate);
  reader.Read("decay_steps", options.decay_steps);
  reader.Read("end_learning_rate", options.end_learning_rate);
  reader.Read("power", options.power);
  reader.Read("cycle", options.cycle);
  return PolynomialDecay(options);
}

LearningRateSchedulePtr ReadCosine(ConfigReader& reader) {
  CosineDecayOptions options = {};
  reader.Ignore("name");
  reader.Read("initial_learning_rate", options.initial_learning_rate);
  reader.Read("decay_steps", options.decay_steps);
  reader.Read("alpha", options.alpha);
  reader.Read("warmup_target", options.warmup_target);
  reader.Read("warmup_steps", options.warmup_steps);
  return CosineDecay(options);
}

LearningRateSchedulePtr ReadRestarts(ConfigReader& reader) {
  CosineDecayRestartsOptions options = {};
  reader.Ignore("name");
  reader.Read("initial_learning_rate", options.initial_learning_rate);
  reader.Read("first_decay_steps", options.first_decay_steps);
  reader.Read("t_mul", options.t_mul);
  reader.Read("m_mul", options.m_mul);
  reader.Read("alpha", options.alpha);
  return CosineDecayRestarts(options);
}

LearningRateSchedulePtr ReadPiecewise(ConfigReader& reader) {
  std::vector<int64_t> boundaries;
  std::vector<double> values;
  reader.Ignore("name");
  reader.ReadBy("boundaries", [&](const ConfigValue& value) {
    for (const ConfigValue& boundary : value.AsList()) boundaries.push_back(boundary.AsInt());
  });
  reader.ReadBy("values", [&](const ConfigValue& value) {
    for (const ConfigValue& rate : value.AsList()) values.push_back(rate.AsDouble());
  });
  return PiecewiseConstantDecay(boundaries, values);
}

void CheckSteps(const char* schedule, double decay_steps) {
  if (decay_steps > 0.0) return;
  throw InvalidArgumentError(
      StrCat("[keras/learning_rate_schedule] ", schedule, " expected decay_steps > 0; got ", decay_steps));
}

// Linearly from `initial` to the target. Then the decay begins there, and `step` counts from there.
Output WarmUp(const CosineDecayOptions& options, Output iterations) {
  const Output step = ops::Cast(iterations, DType::kFloat32);
  const auto warmup_steps = static_cast<float>(options.warmup_steps);
  const auto initial = static_cast<float>(options.initial_learning_rate);
  const auto target = static_cast<float>(options.warmup_target);
  const Output rising = step * ((target - initial) / warmup_steps) + initial;
  const Output since = ops::Maximum(step - warmup_steps, ops::ScalarLike(step, 0.0));
  const Output falling = train::CosineDecay(options.warmup_target, since, options.decay_steps, options.alpha);
  return ops::SelectV2(ops::Less(step, ops::ScalarLike(step, options.warmup_steps)), rising, falling);
}

}  // namespace

ConfigValue LearningRateSchedule::Serialized() const {
  throw UnimplementedError(StrCat("[keras/learning_rate_schedule] '", name_,
                                  "' is a schedule of the program's own, which a file cannot describe"));
}

LearningRateSchedulePtr ScheduleFromFunction(std::string name, std::function<Output(Output)> at) {
  return std::make_shared<FunctionSchedule>(std::move(name), std::move(at));
}

LearningRateSchedulePtr ExponentialDecay(const ExponentialDecayOptions& options) {
  CheckSteps("ExponentialDecay", options.decay_steps);
  return KerasSchedule("ExponentialDecay", ConfigOf(options), [options](Output iterations) {
    return train::ExponentialDecay(options.initial_learning_rate, iterations, options.decay_steps, options.decay_rate,
                                   options.staircase);
  });
}

LearningRateSchedulePtr InverseTimeDecay(const ExponentialDecayOptions& options) {
  CheckSteps("InverseTimeDecay", options.decay_steps);
  return KerasSchedule("InverseTimeDecay", ConfigOf(options), [options](Output iterations) {
    return train::InverseTimeDecay(options.initial_learning_rate, iterations, options.decay_steps, options.decay_rate,
                                   options.staircase);
  });
}

LearningRateSchedulePtr PolynomialDecay(const PolynomialDecayOptions& options) {
  CheckSteps("PolynomialDecay", options.decay_steps);
  return KerasSchedule("PolynomialDecay",
                       {{"initial_learning_rate", options.initial_learning_rate},
                        {"decay_steps", options.decay_steps},
                        {"end_learning_rate", options.end_learning_rate},
                        {"power", options.power},
                        {"cycle", options.cycle}},
                       [options](Output iterations) {
                         return train::PolynomialDecay(options.initial_learning_rate, iterations, options.decay_steps,
                                                       options.end_learning_rate, options.power, options.cycle);
                       });
}

LearningRateSchedulePtr CosineDecay(const CosineDecayOptions& options) {
  CheckSteps("CosineDecay", options.decay_steps);
  if (!(options.warmup_steps >= 0.0)) {
    throw InvalidArgumentError(StrCat(
        "[keras/learning_rate_schedule] CosineDecay expected warmup_steps of at least 0; got ", options.warmup_steps));
  }
  const bool warms_up = options.warmup_steps > 0.0;
  ConfigValue::Object config = {{"initial_learning_rate", options.initial_learning_rate},
                                {"decay_steps", options.decay_steps},
                                {"alpha", options.alpha},
                                {"warmup_target", warms_up ? ConfigValue(options.warmup_target) : ConfigValue()},
                                {"warmup_steps", options.warmup_steps}};
  return KerasSchedule("CosineDecay", std::move(config), [options](Output iterations) {
    if (options.warmup_steps > 0.0) return WarmUp(options, iterations);
    return train::CosineDecay(options.initial_learning_rate, iterations, options.decay_steps, options.alpha);
  });
}

LearningRateSchedulePtr CosineDecayRestarts(const CosineDecayRestartsOptions& options) {
  if (!(options.first_decay_steps > 0.0) || !(options.t_mul >= 1.0)) {
    throw InvalidArgumentError(
        StrCat("[keras/learning_rate_schedule] CosineDecayRestarts expected first_decay_steps > ",
               "0 and t_mul of at least 1; got ", options.first_decay_steps, " and ", options.t_mul));
  }
  return KerasSchedule(
      "CosineDecayRestarts",
      {{"initial_learning_rate", options.initial_learning_rate},
       {"first_decay_steps", options.first_decay_steps},
       {"t_mul", options.t_mul},
       {"m_mul", options.m_mul},
       {"alpha", options.alpha}},
      [options](Output iterations) {
        return train::CosineDecayRestarts(options.initial_learning_rate, iterations, options.first_decay_steps,
                                          options.t_mul, options.m_mul, options.alpha);
      },
      "SGDRDecay");
}

LearningRateSchedulePtr PiecewiseConstantDecay(const std::vector<int64_t>& boundaries,
                                               const std::vector<double>& values) {
  // Tries it on a separate graph, so that the description throws for invalid numbers.
  Graph trial;
  train::PiecewiseConstant(ops::Const(trial, int64_t{0}), boundaries, values);
  return KerasSchedule(
      "PiecewiseConstantDecay",
      {{"boundaries", ConfigValue::List(boundaries.begin(), boundaries.end())},
       {"values", ConfigValue::List(values.begin(), values.end())}},
      [boundaries, values](Output iterations) { return train::PiecewiseConstant(iterations, boundaries, values); },
      "PiecewiseConstant");
}

LearningRateSchedulePtr DeserializeSchedule(const ConfigValue& value) {
  static const ConfigMakers<LearningRateSchedulePtr> makers(
      "schedule", {{"ExponentialDecay", [](ConfigReader& r) { return ExponentialDecay(ReadExponential(r)); }},
                   {"InverseTimeDecay", [](ConfigReader& r) { return InverseTimeDecay(ReadExponential(r)); }},
                   {"PolynomialDecay", ReadPolynomial},
                   {"CosineDecay", ReadCosine},
                   {"CosineDecayRestarts", ReadRestarts},
                   {"PiecewiseConstantDecay", ReadPiecewise}});
  return MakeFromConfig("schedule", makers, value);
}

}  // namespace cohort::keras
