// AUC, the area under a curve. The state is a histogram: for each threshold, the weights of the positive and of the
// negative examples whose prediction is above this threshold and not above the next one. So a batch needs one pass,
// whatever the number of thresholds. The counts at each threshold are running sums from the end.
#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/metrics/metric_config.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/ops/partition.h"
#include "cohort/ops/slice.h"

namespace cohort::keras {
namespace {

constexpr double kEpsilon = 1e-7;

class AreaUnderCurve final : public Metric {
 public:
  explicit AreaUnderCurve(const AucOptions& options)
      : Metric(options.name), options_(options), thresholds_(Thresholds(options)) {}

  MetricDirection direction() const override { return MetricDirection::kUp; }
  std::vector<MetricState> States() const override {
    const Shape shape = {count()};
    return {{"positives", shape}, {"negatives", shape}};
  }
  std::vector<Output> Increments(const Output& y_true, const Output& y_pred,
                                 const Output& sample_weight) const override;
  Output Result(const std::vector<Output>& states) const override;
  ConfigValue Serialized() const override;

 private:
  int64_t count() const { return static_cast<int64_t>(thresholds_.size()); }
  bool evenly_spaced() const { return options_.thresholds.empty(); }
  static std::vector<float> Thresholds(const AucOptions& options);
  // Returns, for each prediction [n], the last threshold that is below it, int32 [n].
  Output BucketOf(const Output& predictions) const;

  const AucOptions options_;
  const std::vector<float> thresholds_;
};

std::vector<float> AreaUnderCurve::Thresholds(const AucOptions& options) {
  std::vector<double> inner = options.thresholds;
  if (inner.empty()) {
    if (options.num_thresholds < 2) {
      throw InvalidArgumentError(
          StrCat("[keras/metric] AUC expected num_thresholds > 1; got ", options.num_thresholds));
    }
    for (int i = 1; i + 1 < options.num_thresholds; ++i) {
      inner.push_back(static_cast<double>(i) / (options.num_thresholds - 1));
    }
  }
  std::sort(inner.begin(), inner.end());
  std::vector<float> all = {static_cast<float>(-kEpsilon)};
  for (const double threshold : inner) {
    if (!(threshold >= 0.0 && threshold <= 1.0)) {
      throw InvalidArgumentError(StrCat("[keras/metric] AUC expected thresholds in [0, 1]; got ", threshold));
    }
    all.push_back(static_cast<float>(threshold));
  }
  all.push_back(static_cast<float>(1.0 + kEpsilon));
  return all;
}

Output AreaUnderCurve::BucketOf(const Output& predictions) const {
  Graph& graph = predictions.graph();
  const Output zero = ops::ScalarLike(predictions, 0.0);
  if (evenly_spaced()) {
    // The same formula as Keras, so that rounding puts each prediction into the same bucket.
    const Output scaled = ops::Ceil(predictions * static_cast<float>(count() - 1)) - 1.0f;
    return ops::Cast(ops::Maximum(scaled, zero), DType::kInt32);
  }
  const Output below = ops::Less(ops::Const(graph, thresholds_), ops::ExpandDims(predictions, -1));
  return ops::Sub(ops::Sum(ops::Cast(below, DType::kInt32), {-1}), ops::Const(graph, 1));
}

std::vector<Output> AreaUnderCurve::Increments(const Output& y_true, const Output& y_pred,
                                               const Output& sample_weight) const {
  Graph& graph = y_pred.graph();
  Output predictions = CastTo(y_pred, DType::kFloat32);
  if (options_.from_logits) predictions = ops::Sigmoid(predictions);
  const Aligned aligned = AlignRanks(CastTo(y_true, DType::kFloat32), predictions);
  Output weights = ops::OnesLike(aligned.second);
  if (sample_weight.valid()) weights = ops::Mul(weights, AlignWeights(aligned.second, sample_weight));
  // Any label but 0 is a positive example, as in Keras.
  const Output labels =
      ops::Cast(ops::NotEqual(ops::Reshape(aligned.first, {-1}), ops::ScalarLike(aligned.first, 0.0)), DType::kFloat32);
  predictions = ops::Reshape(aligned.second, {-1});
  weights = ops::Reshape(weights, {-1});
  // Written so that the check also fails for NaN.
  const Output in_range = ops::LogicalAnd(ops::GreaterEqual(predictions, ops::ScalarLike(predictions, 0.0)),
                                          ops::LessEqual(predictions, ops::ScalarLike(predictions, 1.0)));
  Node* check = ops::Assert(ops::All(in_range),
                            {ops::Const(graph, StrCat("[keras/metric] '", name(),
                                                      "' expected predictions in [0, 1] (from_logits where they are "
                                                      "logits); got")),
                             predictions});
  const ControlDependencies after(graph, {check});
  const Output buckets = BucketOf(ops::Identity(predictions));
  const Output size = ops::Const(graph, static_cast<int32_t>(count()));
  const auto histogram = [&](const Output& amounts) {
    return CastTo(ops::UnsortedSegmentSum(ops::Mul(amounts, weights), buckets, size), DType::kFloat64);
  };
  return {histogram(labels), histogram(1.0f - labels)};
}

ConfigValue AreaUnderCurve::Serialized() const {
  const SummationMethod method = options_.summation_method;
  ConfigValue::Object config = {
      {"name", name()},
      {"dtype", "float32"},
      {"num_thresholds", count()},
      {"curve", options_.curve == Curve::kRoc ? "ROC" : "PR"},
      {"summation_method", method == SummationMethod::kInterpolation ? "interpolation"
                           : method == SummationMethod::kMinoring    ? "minoring"
                                                                     : "majoring"},
      {"multi_label", false},
      {"num_labels", nullptr},
      {"label_weights", nullptr},
      {"from_logits", options_.from_logits},
  };
  if (!evenly_spaced()) {
    config.emplace_back("thresholds", ConfigValue::List(options_.thresholds.begin(), options_.thresholds.end()));
  }
  return SerializedObject("keras.metrics", "AUC", std::move(config));
}

// Elements [0, n - 1) and [1, n) of a vector.
struct Neighbours {
  Output here;
  Output next;
};
Neighbours Pairs(const Output& values, int64_t n) {
  return {ops::Slice(values, {0}, {n - 1}), ops::Slice(values, {1}, {n - 1})};
}

// Area under the precision-recall curve with precision interpolated between thresholds (Davis and Goadrich 2006).
Output InterpolatedPrecisionRecall(const Output& tp, const Output& fp, const Output& positives, int64_t n) {
  const Neighbours t = Pairs(tp, n);
  const Neighbours p = Pairs(ops::Add(tp, fp), n);
  const Output zero = ops::ScalarLike(tp, 0.0);
  const Output slope = DivideNoNan(ops::Sub(t.here, t.next), ops::Maximum(ops::Sub(p.here, p.next), zero));
  const Output intercept = ops::Sub(t.next, ops::Mul(slope, p.next));
  const Output both = ops::LogicalAnd(ops::Greater(p.here, zero), ops::Greater(p.next, zero));
  const Output ratio = ops::SelectV2(both, DivideNoNan(p.here, p.next), ops::OnesLike(p.next));
  const Output gained = ops::Add(ops::Sub(t.here, t.next), ops::Mul(intercept, ops::Log(ratio)));
  return ops::Sum(DivideNoNan(ops::Mul(slope, gained), positives));
}

Output AreaUnderCurve::Result(const std::vector<Output>& states) const {
  const int64_t n = count();
  const Output tp = ops::Cumsum(states.at(0), 0, false, true);
  const Output fp = ops::Cumsum(states.at(1), 0, false, true);
  const Output positives = ops::Sum(states.at(0));
  const Output negatives = ops::Sum(states.at(1));
  if (options_.curve == Curve::kPr && options_.summation_method == SummationMethod::kInterpolation) {
    return InterpolatedPrecisionRecall(tp, fp, positives, n);
  }
  const Output recall = DivideNoNan(tp, positives);
  const bool is_roc = options_.curve == Curve::kRoc;
  const Neighbours x = Pairs(is_roc ? DivideNoNan(fp, negatives) : recall, n);
  const Neighbours y = Pairs(is_roc ? recall : DivideNoNan(tp, ops::Add(tp, fp)), n);
  Output heights;
  switch (options_.summation_method) {
    case SummationMethod::kInterpolation:
      heights = ops::Mul(ops::Add(y.here, y.next), ops::ScalarLike(y.here, 0.5));
      break;
    case SummationMethod::kMinoring: heights = ops::Minimum(y.here, y.next); break;
    case SummationMethod::kMajoring: heights = ops::Maximum(y.here, y.next); break;
  }
  return ops::Sum(ops::Mul(ops::Sub(x.here, x.next), heights));
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

}  // namespace

MetricPtr AUC(const AucOptions& options) { return std::make_shared<AreaUnderCurve>(options); }

std::vector<MetricMaker> AucMakers() { return {{"AUC", ReadAuc}}; }

}  // namespace cohort::keras
