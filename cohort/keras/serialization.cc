#include "cohort/keras/serialization.h"

#include <functional>
#include <set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/names.h"

namespace cohort::keras {
namespace {

// Reads the configuration of one object; every name in it has to be asked for.
class Reader {
 public:
  // `what`: "optimizer", for errors.
  Reader(const char* what, const ConfigValue& value)
      : what_(what), class_name_(value.At("class_name").AsString()), config_(value.At("config")) {
    config_.AsObject();
  }

  const std::string& class_name() const { return class_name_; }

  void Read(const char* name, bool& to) {
    ReadBy(name, [&](const ConfigValue& value) { to = value.AsBool(); });
  }
  void Read(const char* name, int& to) {
    ReadBy(name, [&](const ConfigValue& value) { to = static_cast<int>(value.AsInt()); });
  }
  void Read(const char* name, double& to) {
    ReadBy(name, [&](const ConfigValue& value) { to = value.AsDouble(); });
  }
  void Read(const char* name, std::optional<double>& to) {
    ReadBy(name, [&](const ConfigValue& value) { to = value.AsDouble(); });
  }
  void Read(const char* name, std::string& to) {
    ReadBy(name, [&](const ConfigValue& value) { to = value.AsString(); });
  }
  // Where the value is missing or null nothing is read.
  void ReadBy(const char* name, const std::function<void(const ConfigValue&)>& read) {
    asked_.insert(name);
    const ConfigValue* found = config_.Find(name);
    if (found == nullptr || found->is_null()) return;
    try {
      read(*found);
    } catch (const InvalidArgumentError& error) {
      throw InvalidArgumentError(StrCat(error.what(), " (", name, " of the ", what_, " ", class_name_, ")"));
    }
  }
  void Ignore(const char* name) { asked_.insert(name); }
  // Where a library has more than we have: the default alone.
  void OnlyDefault(const char* name, const ConfigValue& value) {
    ReadBy(name, [&](const ConfigValue& found) {
      if (found.ToJson() == value.ToJson()) return;
      throw InvalidArgumentError(StrCat("[keras/serialization] expected ", value.ToJson(),
                                        ", since others are not "
                                        "implemented; got ",
                                        found.ToJson()));
    });
  }
  void Finish() const {
    for (const auto& [name, value] : config_.AsObject()) {
      if (asked_.count(name) > 0) continue;
      throw InvalidArgumentError(StrCat("[keras/serialization] expected a ", what_, " ", class_name_,
                                        " with options that are known; got '", name, "'"));
    }
  }

 private:
  const char* const what_;
  const std::string class_name_;
  const ConfigValue config_;
  std::set<std::string> asked_;
};

template <typename Result>
using Makers = NameTable<std::function<Result(Reader&)>>;

// By a name alone, or the name of a function in Keras's form for functions; "" otherwise.
std::string NameIn(const ConfigValue& value) {
  if (value.is_string()) return value.AsString();
  const ConfigValue* config = value.Find("config");
  return config != nullptr && config->is_string() ? config->AsString() : "";
}

// ---- losses ------------------------------------------------------------------------------------------------------

template <typename Options>
void ReadLossOptions(Reader& reader, Options& options) {
  reader.Read("name", options.name);
  reader.Ignore("dtype");
  reader.ReadBy("reduction", [&](const ConfigValue& value) {
    static const NameTable<Reduction> table("reduction", {{"sum_over_batch_size", Reduction::kSumOverBatchSize},
                                                          {"mean", Reduction::kSumOverBatchSize},
                                                          {"mean_with_sample_weight", Reduction::kMeanWithSampleWeight},
                                                          {"sum", Reduction::kSum}});
    options.reduction = table.Find(value.AsString());
  });
}

CrossentropyOptions ReadCrossentropy(Reader& reader) {
  CrossentropyOptions options;
  ReadLossOptions(reader, options);
  reader.Read("from_logits", options.from_logits);
  reader.Read("label_smoothing", options.label_smoothing);
  reader.OnlyDefault("axis", -1);
  return options;
}

LossPtr ReadSparse(Reader& reader) {
  SparseCrossentropyOptions options;
  ReadLossOptions(reader, options);
  reader.Read("from_logits", options.from_logits);
  reader.OnlyDefault("ignore_class", nullptr);
  reader.OnlyDefault("axis", -1);
  return SparseCategoricalCrossentropy(options);
}

LossOptions ReadPlain(Reader& reader) {
  LossOptions options;
  ReadLossOptions(reader, options);
  return options;
}

LossPtr ReadHuber(Reader& reader) {
  HuberOptions options;
  ReadLossOptions(reader, options);
  reader.Read("delta", options.delta);
  return Huber(options);
}

// ---- metrics -----------------------------------------------------------------------------------------------------

std::string ReadMetricName(Reader& reader, const char* fallback) {
  std::string name = fallback;
  reader.Read("name", name);
  reader.Ignore("dtype");
  return name;
}

MetricPtr ReadBinaryAccuracy(Reader& reader) {
  const std::string name = ReadMetricName(reader, "binary_accuracy");
  double threshold = 0.5;
  reader.Read("threshold", threshold);
  return BinaryAccuracy(name, threshold);
}

int ReadK(Reader& reader) {
  int k = 5;
  reader.Read("k", k);
  return k;
}

MetricPtr ReadAuc(Reader& reader) {
  AucOptions options;
  options.name = ReadMetricName(reader, "auc");
  reader.Read("num_thresholds", options.num_thresholds);
  reader.Read("from_logits", options.from_logits);
  reader.ReadBy("curve", [&](const ConfigValue& value) {
    static const NameTable<Curve> table("curve", {{"ROC", Curve::kRoc}, {"PR", Curve::kPr}});
    options.curve = table.Find(value.AsString());
  });
  reader.ReadBy("summation_method", [&](const ConfigValue& value) {
    static const NameTable<SummationMethod> table("summation_method",
                                                  {{"interpolation", SummationMethod::kInterpolation},
                                                   {"minoring", SummationMethod::kMinoring},
                                                   {"majoring", SummationMethod::kMajoring}});
    options.summation_method = table.Find(value.AsString());
  });
  reader.ReadBy("thresholds", [&](const ConfigValue& value) {
    for (const ConfigValue& threshold : value.AsList()) options.thresholds.push_back(threshold.AsDouble());
  });
  reader.OnlyDefault("multi_label", false);
  reader.OnlyDefault("num_labels", nullptr);
  reader.OnlyDefault("label_weights", nullptr);
  return AUC(options);
}

// ---- schedules ---------------------------------------------------------------------------------------------------

ExponentialDecayOptions ReadExponential(Reader& reader) {
  ExponentialDecayOptions options = {};
  reader.Ignore("name");
  reader.Read("initial_learning_rate", options.initial_learning_rate);
  reader.Read("decay_steps", options.decay_steps);
  reader.Read("decay_rate", options.decay_rate);
  reader.Read("staircase", options.staircase);
  return options;
}

LearningRateSchedulePtr ReadPolynomial(Reader& reader) {
  PolynomialDecayOptions options = {};
  reader.Ignore("name");
  reader.Read("initial_learning_rate", options.initial_learning_rate);
  reader.Read("decay_steps", options.decay_steps);
  reader.Read("end_learning_rate", options.end_learning_rate);
  reader.Read("power", options.power);
  reader.Read("cycle", options.cycle);
  return PolynomialDecay(options);
}

LearningRateSchedulePtr ReadCosine(Reader& reader) {
  CosineDecayOptions options = {};
  reader.Ignore("name");
  reader.Read("initial_learning_rate", options.initial_learning_rate);
  reader.Read("decay_steps", options.decay_steps);
  reader.Read("alpha", options.alpha);
  reader.Read("warmup_target", options.warmup_target);
  reader.Read("warmup_steps", options.warmup_steps);
  return CosineDecay(options);
}

LearningRateSchedulePtr ReadPiecewise(Reader& reader) {
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

// ---- optimizers --------------------------------------------------------------------------------------------------

template <typename Options>
Options ReadOptimizerOptions(Reader& reader) {
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

OptimizerPtr ReadSgd(Reader& reader) {
  auto options = ReadOptimizerOptions<SGDOptions>(reader);
  reader.Read("momentum", options.momentum);
  reader.Read("nesterov", options.nesterov);
  return SGD(options);
}

OptimizerPtr ReadAdagrad(Reader& reader) {
  auto options = ReadOptimizerOptions<AdagradOptions>(reader);
  reader.Read("initial_accumulator_value", options.initial_accumulator_value);
  reader.Read("epsilon", options.epsilon);
  return Adagrad(options);
}

AdamOptions ReadAdam(Reader& reader) {
  auto options = ReadOptimizerOptions<AdamOptions>(reader);
  reader.Read("beta_1", options.beta_1);
  reader.Read("beta_2", options.beta_2);
  reader.Read("epsilon", options.epsilon);
  reader.Read("amsgrad", options.amsgrad);
  return options;
}

OptimizerPtr ReadRmsprop(Reader& reader) {
  auto options = ReadOptimizerOptions<RMSpropOptions>(reader);
  reader.Read("rho", options.rho);
  reader.Read("momentum", options.momentum);
  reader.Read("epsilon", options.epsilon);
  reader.Read("centered", options.centered);
  return RMSprop(options);
}

OptimizerPtr ReadFtrl(Reader& reader) {
  auto options = ReadOptimizerOptions<FtrlOptions>(reader);
  reader.Read("learning_rate_power", options.learning_rate_power);
  reader.Read("initial_accumulator_value", options.initial_accumulator_value);
  reader.Read("l1_regularization_strength", options.l1_regularization_strength);
  reader.Read("l2_regularization_strength", options.l2_regularization_strength);
  reader.Read("l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength);
  reader.Read("beta", options.beta);
  return Ftrl(options);
}

// Reads the whole object by the maker of its class.
template <typename Result>
Result Make(const char* what, const Makers<Result>& makers, const ConfigValue& value) {
  Reader reader(what, value);
  Result result = makers.Find(reader.class_name())(reader);
  reader.Finish();
  return result;
}

}  // namespace

LossPtr DeserializeLoss(const ConfigValue& value) {
  const std::string name = NameIn(value);
  if (!name.empty()) return LossByName(name);
  static const Makers<LossPtr> makers(
      "loss", {{"SparseCategoricalCrossentropy", ReadSparse},
               {"CategoricalCrossentropy", [](Reader& r) { return CategoricalCrossentropy(ReadCrossentropy(r)); }},
               {"BinaryCrossentropy", [](Reader& r) { return BinaryCrossentropy(ReadCrossentropy(r)); }},
               {"MeanSquaredError", [](Reader& r) { return MeanSquaredError(ReadPlain(r)); }},
               {"MeanAbsoluteError", [](Reader& r) { return MeanAbsoluteError(ReadPlain(r)); }},
               {"Huber", ReadHuber}});
  return Make("loss", makers, value);
}

MetricArgument DeserializeMetric(const ConfigValue& value) {
  const std::string name = NameIn(value);
  if (!name.empty()) return MetricArgument(name);
  const auto named = [](const char* fallback, MetricPtr (*make)(const std::string&)) {
    return [fallback, make](Reader& r) { return make(ReadMetricName(r, fallback)); };
  };
  static const Makers<MetricPtr> makers(
      "metric", {{"Accuracy", named("accuracy", Accuracy)},
                 {"BinaryAccuracy", ReadBinaryAccuracy},
                 {"CategoricalAccuracy", named("categorical_accuracy", CategoricalAccuracy)},
                 {"SparseCategoricalAccuracy", named("sparse_categorical_accuracy", SparseCategoricalAccuracy)},
                 {"TopKCategoricalAccuracy",
                  [](Reader& r) {
                    const std::string of = ReadMetricName(r, "top_k_categorical_accuracy");
                    return TopKCategoricalAccuracy(ReadK(r), of);
                  }},
                 {"SparseTopKCategoricalAccuracy",
                  [](Reader& r) {
                    const std::string of = ReadMetricName(r, "sparse_top_k_categorical_accuracy");
                    r.Ignore("from_sorted_ids");
                    return SparseTopKCategoricalAccuracy(ReadK(r), of);
                  }},
                 {"AUC", ReadAuc},
                 {"Mean", named("mean", Mean)}});
  return Make("metric", makers, value);
}

LearningRateSchedulePtr DeserializeSchedule(const ConfigValue& value) {
  static const Makers<LearningRateSchedulePtr> makers(
      "schedule", {{"ExponentialDecay", [](Reader& r) { return ExponentialDecay(ReadExponential(r)); }},
                   {"InverseTimeDecay", [](Reader& r) { return InverseTimeDecay(ReadExponential(r)); }},
                   {"PolynomialDecay", ReadPolynomial},
                   {"CosineDecay", ReadCosine},
                   {"PiecewiseConstantDecay", ReadPiecewise}});
  return Make("schedule", makers, value);
}

OptimizerPtr DeserializeOptimizer(const ConfigValue& value) {
  const std::string name = NameIn(value);
  if (!name.empty()) return OptimizerByName(name);
  static const Makers<OptimizerPtr> makers("optimizer", {{"SGD", ReadSgd},
                                                         {"Adagrad", ReadAdagrad},
                                                         {"Adam", [](Reader& r) { return Adam(ReadAdam(r)); }},
                                                         {"AdamW", [](Reader& r) { return AdamW(ReadAdam(r)); }},
                                                         {"RMSprop", ReadRmsprop},
                                                         {"Ftrl", ReadFtrl}});
  return Make("optimizer", makers, value);
}

}  // namespace cohort::keras
