// Reads losses, metrics and schedules from their form in files. Each kind has a table from Keras's class names to
// functions that read the options with a ConfigReader. Layers, optimizers, initializers and regularizers have such
// tables in their own sources.
#include "cohort/keras/files/serialization.h"

#include <utility>

#include "cohort/keras/files/config_reader.h"

namespace cohort::keras {
namespace {

// ---- losses ------------------------------------------------------------------------------------------------------

template <typename Options>
void ReadLossOptions(ConfigReader& reader, Options& options) {
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

CrossentropyOptions ReadCrossentropy(ConfigReader& reader) {
  CrossentropyOptions options;
  ReadLossOptions(reader, options);
  reader.Read("from_logits", options.from_logits);
  reader.Read("label_smoothing", options.label_smoothing);
  reader.OnlyDefault("axis", -1);
  return options;
}

LossPtr ReadSparse(ConfigReader& reader) {
  SparseCrossentropyOptions options;
  ReadLossOptions(reader, options);
  reader.Read("from_logits", options.from_logits);
  reader.OnlyDefault("ignore_class", nullptr);
  reader.OnlyDefault("axis", -1);
  return SparseCategoricalCrossentropy(options);
}

LossOptions ReadPlain(ConfigReader& reader) {
  LossOptions options;
  ReadLossOptions(reader, options);
  return options;
}

LossPtr ReadHuber(ConfigReader& reader) {
  HuberOptions options;
  ReadLossOptions(reader, options);
  reader.Read("delta", options.delta);
  return Huber(options);
}

// ---- metrics -----------------------------------------------------------------------------------------------------

std::string ReadMetricName(ConfigReader& reader, const char* fallback) {
  std::string name = fallback;
  reader.Read("name", name);
  reader.Ignore("dtype");
  return name;
}

MetricPtr ReadBinaryAccuracy(ConfigReader& reader) {
  const std::string name = ReadMetricName(reader, "binary_accuracy");
  double threshold = 0.5;
  reader.Read("threshold", threshold);
  return BinaryAccuracy(name, threshold);
}

int ReadK(ConfigReader& reader) {
  int k = 5;
  reader.Read("k", k);
  return k;
}

MetricPtr ReadAuc(ConfigReader& reader) {
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

}  // namespace

LossPtr DeserializeLoss(const ConfigValue& value) {
  const std::string name = NameIn(value);
  if (!name.empty()) return LossByName(name);
  static const ConfigMakers<LossPtr> makers(
      "loss",
      {{"SparseCategoricalCrossentropy", ReadSparse},
       {"CategoricalCrossentropy", [](ConfigReader& r) { return CategoricalCrossentropy(ReadCrossentropy(r)); }},
       {"BinaryCrossentropy", [](ConfigReader& r) { return BinaryCrossentropy(ReadCrossentropy(r)); }},
       {"MeanSquaredError", [](ConfigReader& r) { return MeanSquaredError(ReadPlain(r)); }},
       {"MeanAbsoluteError", [](ConfigReader& r) { return MeanAbsoluteError(ReadPlain(r)); }},
       {"Huber", ReadHuber}});
  return MakeFromConfig("loss", makers, value);
}

MetricArgument DeserializeMetric(const ConfigValue& value) {
  const std::string name = NameIn(value);
  if (!name.empty()) return MetricArgument(name);
  const auto named = [](const char* fallback, MetricPtr (*make)(const std::string&)) {
    return [fallback, make](ConfigReader& r) { return make(ReadMetricName(r, fallback)); };
  };
  static const ConfigMakers<MetricPtr> makers(
      "metric", {{"Accuracy", named("accuracy", Accuracy)},
                 {"BinaryAccuracy", ReadBinaryAccuracy},
                 {"CategoricalAccuracy", named("categorical_accuracy", CategoricalAccuracy)},
                 {"SparseCategoricalAccuracy", named("sparse_categorical_accuracy", SparseCategoricalAccuracy)},
                 {"TopKCategoricalAccuracy",
                  [](ConfigReader& r) {
                    const std::string of = ReadMetricName(r, "top_k_categorical_accuracy");
                    return TopKCategoricalAccuracy(ReadK(r), of);
                  }},
                 {"SparseTopKCategoricalAccuracy",
                  [](ConfigReader& r) {
                    const std::string of = ReadMetricName(r, "sparse_top_k_categorical_accuracy");
                    r.Ignore("from_sorted_ids");
                    return SparseTopKCategoricalAccuracy(ReadK(r), of);
                  }},
                 {"AUC", ReadAuc},
                 {"Mean", named("mean", Mean)}});
  return MakeFromConfig("metric", makers, value);
}

LearningRateSchedulePtr DeserializeSchedule(const ConfigValue& value) {
  static const ConfigMakers<LearningRateSchedulePtr> makers(
      "schedule", {{"ExponentialDecay", [](ConfigReader& r) { return ExponentialDecay(ReadExponential(r)); }},
                   {"InverseTimeDecay", [](ConfigReader& r) { return InverseTimeDecay(ReadExponential(r)); }},
                   {"PolynomialDecay", ReadPolynomial},
                   {"CosineDecay", ReadCosine},
                   {"PiecewiseConstantDecay", ReadPiecewise}});
  return MakeFromConfig("schedule", makers, value);
}

}  // namespace cohort::keras
