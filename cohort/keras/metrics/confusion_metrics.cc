// Metrics of predictions at one threshold: Precision and Recall, and the four counts. Their states are sums of weights
// of predictions, those that are true positives, false positives and so on.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/metrics/counted_predictions.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/metrics/metric_config.h"
#include "cohort/ops/array.h"
#include "cohort/ops/math.h"

namespace cohort::keras {
namespace {

// Which predictions the metric divides the true positives by, apart from the true positives themselves.
enum class Others { kFalsePositives, kFalseNegatives };

class ConfusionRatio final : public Metric {
 public:
  ConfusionRatio(Others others, const ConfusionOptions& options, const char* class_name, const char* default_name)
      : Metric(options.name.empty() ? default_name : options.name),
        others_(others),
        class_name_(class_name),
        options_(options) {
    CheckThreshold(class_name_, threshold());
    CheckClassId(class_name_, options_.class_id);
  }

  MetricDirection direction() const override { return MetricDirection::kUp; }
  std::vector<MetricState> States() const override {
    return {{"true_positives", Shape()},
            {others_ == Others::kFalsePositives ? "false_positives" : "false_negatives", Shape()}};
  }
  std::vector<Output> Increments(const Output& y_true, const Output& y_pred,
                                 const Output& sample_weight) const override;
  Output Result(const std::vector<Output>& states) const override {
    return DivideNoNan(states.at(0), ops::Add(states.at(0), states.at(1)));
  }
  ConfigValue Serialized() const override;

 private:
  double threshold() const { return options_.thresholds.value_or(0.5); }

  const Others others_;
  const char* const class_name_;
  const ConfusionOptions options_;
};

std::vector<Output> ConfusionRatio::Increments(const Output& y_true, const Output& y_pred,
                                               const Output& sample_weight) const {
  const CountedPredictions counted = CountPredictions(name(), options_.class_id, y_true, y_pred, sample_weight);
  const Output is_above = counted.IsAbove(threshold());
  const Output others = others_ == Others::kFalsePositives
                            ? ops::LogicalAnd(ops::LogicalNot(counted.is_positive), is_above)
                            : ops::LogicalAnd(counted.is_positive, ops::LogicalNot(is_above));
  return {counted.WeightOf(ops::LogicalAnd(counted.is_positive, is_above)), counted.WeightOf(others)};
}

ConfigValue ConfusionRatio::Serialized() const {
  ConfigValue::Object config = {
      {"name", name()}, {"dtype", "float32"}, {"thresholds", nullptr}, {"top_k", nullptr}, {"class_id", nullptr}};
  if (options_.thresholds) config[2].second = *options_.thresholds;
  if (options_.class_id) config[4].second = *options_.class_id;
  return SerializedObject("keras.metrics", class_name_, std::move(config));
}

// Reads the threshold. A list of one threshold is accepted, as Keras accepts it.
void ReadThreshold(ConfigReader& reader, std::optional<double>& threshold) {
  reader.ReadBy("thresholds", [&](const ConfigValue& value) {
    if (!value.is_list()) {
      threshold = value.AsDouble();
    } else if (value.AsList().size() == 1) {
      threshold = value.AsList()[0].AsDouble();
    } else {
      throw InvalidArgumentError(StrCat("[keras/metric] ", reader.class_name(), " expected one threshold; got ",
                                        value.AsList().size(), "; use one metric for each threshold"));
    }
  });
}

ConfusionOptions ReadConfusion(ConfigReader& reader) {
  ConfusionOptions options;
  options.name = ReadMetricName(reader, "");
  ReadThreshold(reader, options.thresholds);
  reader.ReadBy("class_id", [&](const ConfigValue& value) { options.class_id = value.AsInt(); });
  reader.OnlyDefault("top_k", nullptr);
  return options;
}

// The weight of the predictions of one kind.
struct ConfusionKind {
  const char* class_name;
  const char* default_name;
  bool is_positive;  // the label
  bool is_above;     // the prediction
};
constexpr ConfusionKind kTruePositives = {"TruePositives", "true_positives", true, true};
constexpr ConfusionKind kFalsePositives = {"FalsePositives", "false_positives", false, true};
constexpr ConfusionKind kTrueNegatives = {"TrueNegatives", "true_negatives", false, false};
constexpr ConfusionKind kFalseNegatives = {"FalseNegatives", "false_negatives", true, false};

class ConfusionCount final : public Metric {
 public:
  ConfusionCount(const ConfusionKind& kind, const ThresholdOptions& options)
      : Metric(options.name.empty() ? kind.default_name : options.name), kind_(kind), thresholds_(options.thresholds) {
    CheckThreshold(kind_.class_name, thresholds_.value_or(0.5));
  }
  std::vector<MetricState> States() const override { return {{"accumulator", Shape()}}; }
  std::vector<Output> Increments(const Output& y_true, const Output& y_pred,
                                 const Output& sample_weight) const override {
    const CountedPredictions counted = CountPredictions(name(), std::nullopt, y_true, y_pred, sample_weight);
    const auto same = [](const Output& truth, bool wanted) { return wanted ? truth : ops::LogicalNot(truth); };
    const Output is_above = same(counted.IsAbove(thresholds_.value_or(0.5)), kind_.is_above);
    return {counted.WeightOf(ops::LogicalAnd(same(counted.is_positive, kind_.is_positive), is_above))};
  }
  Output Result(const std::vector<Output>& states) const override { return ops::Identity(states.at(0)); }
  ConfigValue Serialized() const override {
    return SerializedObject("keras.metrics", kind_.class_name,
                            {{"name", name()}, {"dtype", "float32"}, {"thresholds", thresholds_}});
  }

 private:
  const ConfusionKind& kind_;
  const std::optional<double> thresholds_;
};

MetricMaker CountMaker(const ConfusionKind& kind) {
  return {kind.class_name, [&kind](ConfigReader& reader) -> MetricPtr {
            ThresholdOptions options;
            options.name = ReadMetricName(reader, "");
            ReadThreshold(reader, options.thresholds);
            return std::make_shared<ConfusionCount>(kind, options);
          }};
}

}  // namespace

MetricPtr TruePositives(const ThresholdOptions& options) {
  return std::make_shared<ConfusionCount>(kTruePositives, options);
}
MetricPtr FalsePositives(const ThresholdOptions& options) {
  return std::make_shared<ConfusionCount>(kFalsePositives, options);
}
MetricPtr TrueNegatives(const ThresholdOptions& options) {
  return std::make_shared<ConfusionCount>(kTrueNegatives, options);
}
MetricPtr FalseNegatives(const ThresholdOptions& options) {
  return std::make_shared<ConfusionCount>(kFalseNegatives, options);
}

MetricPtr Precision(const ConfusionOptions& options) {
  return std::make_shared<ConfusionRatio>(Others::kFalsePositives, options, "Precision", "precision");
}

MetricPtr Recall(const ConfusionOptions& options) {
  return std::make_shared<ConfusionRatio>(Others::kFalseNegatives, options, "Recall", "recall");
}

std::vector<MetricMaker> ConfusionMakers() {
  return {{"Precision", [](ConfigReader& reader) { return Precision(ReadConfusion(reader)); }},
          {"Recall", [](ConfigReader& reader) { return Recall(ReadConfusion(reader)); }},
          CountMaker(kTruePositives),
          CountMaker(kFalsePositives),
          CountMaker(kTrueNegatives),
          CountMaker(kFalseNegatives)};
}

}  // namespace cohort::keras
