// PrecisionAtRecall and its like: the best value of one rate among the thresholds at which another rate is large
// enough. The states are histograms as those of AUC (auc.cc), with one bucket more: bucket 0 has the predictions that
// are above no threshold, and bucket i + 1 those that are above threshold i and not above the next one.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/metrics/counted_predictions.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/metrics/metric_config.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/scan.h"
#include "cohort/ops/slice.h"

namespace cohort::keras {
namespace {

// The counts at each threshold, float64 [thresholds].
struct Counts {
  Output true_positives, false_positives, true_negatives, false_negatives;
};
Output PrecisionOf(const Counts& c) { return DivideNoNan(c.true_positives, c.true_positives + c.false_positives); }
Output RecallOf(const Counts& c) { return DivideNoNan(c.true_positives, c.true_positives + c.false_negatives); }
Output SpecificityOf(const Counts& c) { return DivideNoNan(c.true_negatives, c.true_negatives + c.false_positives); }

// Which rate is wanted, and which has to be large enough. `option` is the name of the least value of the latter.
struct OperatingPointKind {
  const char* class_name;
  const char* default_name;
  const char* option;
  Output (*wanted)(const Counts& counts);
  Output (*constrained)(const Counts& counts);
};
constexpr OperatingPointKind kPrecisionAtRecall = {"PrecisionAtRecall", "precision_at_recall", "recall", PrecisionOf,
                                                   RecallOf};
constexpr OperatingPointKind kRecallAtPrecision = {"RecallAtPrecision", "recall_at_precision", "precision", RecallOf,
                                                   PrecisionOf};
constexpr OperatingPointKind kSensitivityAtSpecificity = {"SensitivityAtSpecificity", "sensitivity_at_specificity",
                                                          "specificity", RecallOf, SpecificityOf};
constexpr OperatingPointKind kSpecificityAtSensitivity = {"SpecificityAtSensitivity", "specificity_at_sensitivity",
                                                          "sensitivity", SpecificityOf, RecallOf};

class OperatingPoint final : public Metric {
 public:
  OperatingPoint(const OperatingPointKind& kind, double least, const OperatingPointOptions& options)
      : Metric(options.name.empty() ? kind.default_name : options.name), kind_(kind), least_(least), options_(options) {
    if (!(least >= 0.0 && least <= 1.0)) {
      throw InvalidArgumentError(
          StrCat("[keras/metric] ", kind_.class_name, " expected ", kind_.option, " in [0, 1]; got ", least));
    }
    if (options_.num_thresholds < 1) {
      throw InvalidArgumentError(
          StrCat("[keras/metric] ", kind_.class_name, " expected num_thresholds > 0; got ", options_.num_thresholds));
    }
    CheckClassId(kind_.class_name, options_.class_id);
  }

  MetricDirection direction() const override { return MetricDirection::kUp; }
  std::vector<MetricState> States() const override {
    const Shape shape = {options_.num_thresholds + 1};
    return {{"positives", shape}, {"negatives", shape}};
  }
  std::vector<Output> Increments(const Output& y_true, const Output& y_pred,
                                 const Output& sample_weight) const override;
  Output Result(const std::vector<Output>& states) const override;
  ConfigValue Serialized() const override {
    ConfigValue::Object config = {{"name", name()},
                                  {"dtype", "float32"},
                                  {"class_id", nullptr},
                                  {"num_thresholds", options_.num_thresholds},
                                  {kind_.option, least_}};
    if (options_.class_id) config[2].second = *options_.class_id;
    return SerializedObject("keras.metrics", kind_.class_name, std::move(config));
  }

 private:
  // Returns, for each prediction [n], its bucket, int32 [n].
  Output BucketOf(const Output& predictions) const;

  const OperatingPointKind& kind_;
  const double least_;
  const OperatingPointOptions options_;
};

Output OperatingPoint::BucketOf(const Output& predictions) const {
  if (options_.num_thresholds == 1) {
    return ops::Cast(ops::Greater(predictions, ops::ScalarLike(predictions, 0.5)), DType::kInt32);
  }
  // The same formula as Keras, so that rounding puts each prediction into the same bucket.
  return ops::Cast(ops::Ceil(predictions * static_cast<float>(options_.num_thresholds - 1)), DType::kInt32);
}

std::vector<Output> OperatingPoint::Increments(const Output& y_true, const Output& y_pred,
                                               const Output& sample_weight) const {
  Graph& graph = y_pred.graph();
  const CountedPredictions counted = CountPredictions(name(), options_.class_id, y_true, y_pred, sample_weight);
  const Output predictions = ops::Reshape(counted.predictions, {-1});
  // Written so that the check also fails for NaN.
  const Output in_range = ops::LogicalAnd(ops::GreaterEqual(predictions, ops::ScalarLike(predictions, 0.0)),
                                          ops::LessEqual(predictions, ops::ScalarLike(predictions, 1.0)));
  Node* check = ops::Assert(
      ops::All(in_range),
      {ops::Const(graph, StrCat("[keras/metric] '", name(), "' expected predictions in [0, 1]; got")), predictions});
  const ControlDependencies after(graph, {check});
  const Output buckets = BucketOf(ops::Identity(predictions));
  const Output size = ops::Const(graph, static_cast<int32_t>(options_.num_thresholds + 1));
  const Output none = ops::ZerosLike(counted.weights);
  const auto histogram = [&](const Output& amounts) {
    return CastTo(ops::UnsortedSegmentSum(ops::Reshape(amounts, {-1}), buckets, size), DType::kFloat64);
  };
  return {histogram(ops::SelectV2(counted.is_positive, counted.weights, none)),
          histogram(ops::SelectV2(counted.is_positive, none, counted.weights))};
}

Output OperatingPoint::Result(const std::vector<Output>& states) const {
  const auto above = [&](const Output& histogram) {
    return ops::Slice(ops::Cumsum(histogram, 0, false, true), {1}, {options_.num_thresholds});
  };
  const Output true_positives = above(states.at(0)), false_positives = above(states.at(1));
  const Counts counts = {true_positives, false_positives, ops::Sum(states.at(1)) - false_positives,
                         ops::Sum(states.at(0)) - true_positives};
  const Output constrained = kind_.constrained(counts), wanted = kind_.wanted(counts);
  const Output feasible = ops::GreaterEqual(constrained, ops::ScalarLike(constrained, least_));
  return ops::Max(ops::SelectV2(feasible, wanted, ops::ZerosLike(wanted)));
}

MetricMaker OperatingPointMaker(const OperatingPointKind& kind) {
  return {kind.class_name, [&kind](ConfigReader& reader) -> MetricPtr {
            OperatingPointOptions options;
            options.name = ReadMetricName(reader, "");
            reader.Read("num_thresholds", options.num_thresholds);
            reader.ReadBy("class_id", [&](const ConfigValue& value) { options.class_id = value.AsInt(); });
            return std::make_shared<OperatingPoint>(kind, reader.Required(kind.option).AsDouble(), options);
          }};
}

}  // namespace

MetricPtr PrecisionAtRecall(double recall, const OperatingPointOptions& options) {
  return std::make_shared<OperatingPoint>(kPrecisionAtRecall, recall, options);
}
MetricPtr RecallAtPrecision(double precision, const OperatingPointOptions& options) {
  return std::make_shared<OperatingPoint>(kRecallAtPrecision, precision, options);
}
MetricPtr SensitivityAtSpecificity(double specificity, const OperatingPointOptions& options) {
  return std::make_shared<OperatingPoint>(kSensitivityAtSpecificity, specificity, options);
}
MetricPtr SpecificityAtSensitivity(double sensitivity, const OperatingPointOptions& options) {
  return std::make_shared<OperatingPoint>(kSpecificityAtSensitivity, sensitivity, options);
}

std::vector<MetricMaker> OperatingPointMakers() {
  return {OperatingPointMaker(kPrecisionAtRecall), OperatingPointMaker(kRecallAtPrecision),
          OperatingPointMaker(kSensitivityAtSpecificity), OperatingPointMaker(kSpecificityAtSensitivity)};
}

}  // namespace cohort::keras
