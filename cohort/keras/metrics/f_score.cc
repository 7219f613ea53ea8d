// FBetaScore and F1Score. The states are sums for each class; for the average "micro" they are scalars.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/losses/elementwise_loss.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/metrics/metric_config.h"
#include "cohort/keras/metrics/table_shapes.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"

namespace cohort::keras {
namespace {

class FScore final : public Metric {
 public:
  FScore(const char* class_name, const FBetaScoreOptions& options)
      : Metric(options.name), class_name_(class_name), options_(options) {
    const std::string& average = options_.average;
    if (average != "micro" && average != "macro" && average != "weighted") {
      throw InvalidArgumentError(StrCat("[keras/metric] ", class_name_, " expected average to be micro, macro or ",
                                        "weighted; got '", average, "'; one value for each class is not possible"));
    }
    if (!(options_.beta > 0.0)) {
      throw InvalidArgumentError(StrCat("[keras/metric] ", class_name_, " expected beta > 0; got ", options_.beta));
    }
    if (options_.threshold && !(*options_.threshold > 0.0 && *options_.threshold <= 1.0)) {
      throw InvalidArgumentError(
          StrCat("[keras/metric] ", class_name_, " expected threshold in (0, 1]; got ", *options_.threshold));
    }
  }

  MetricDirection direction() const override { return MetricDirection::kUp; }
  std::vector<MetricState> StatesFor(const Shape& y_true, const Shape& y_pred) const override {
    const int64_t classes = ColumnsOf(name(), y_true, y_pred);
    const Shape shape = is_micro() ? Shape() : Shape{classes};
    return {{"true_positives", shape},
            {"false_positives", shape},
            {"false_negatives", shape},
            {"intermediate_weights", shape}};
  }
  std::vector<Output> Increments(const Output& y_true, const Output& y_pred,
                                 const Output& sample_weight) const override {
    ColumnsOf(name(), y_true.shape(), y_pred.shape());
    const Output t = CastTo(y_true, DType::kFloat32);
    const Output p = ops::Cast(IsPositive(CastTo(y_pred, DType::kFloat32)), DType::kFloat32);
    const auto sum = [&](Output values) {
      if (sample_weight.valid()) values = ops::Mul(values, AlignWeights(values, sample_weight));
      return CastTo(is_micro() ? ops::Sum(values) : ops::Sum(values, {0}), DType::kFloat64);
    };
    return {sum(p * t), sum(p * (1.0f - t)), sum((1.0f - p) * t), sum(t)};
  }
  Output Result(const std::vector<Output>& states) const override {
    const Output &right = states.at(0), &labels = states.at(3);
    const auto divided = [](const Output& a, const Output& b) { return a / (b + kLossEpsilon); };
    const Output precision = divided(right, right + states.at(1)), recall = divided(right, right + states.at(2));
    const double square = options_.beta * options_.beta;
    const Output scores = divided(precision * recall, precision * square + recall) * (1.0 + square);
    if (options_.average == "weighted") return ops::Sum(scores * divided(labels, ops::Sum(labels)));
    return ops::Mean(scores);
  }
  ConfigValue Serialized() const override {
    ConfigValue::Object config = {{"name", name()}, {"dtype", "float32"}, {"average", options_.average}};
    if (std::string(class_name_) == "FBetaScore") config.emplace_back("beta", options_.beta);
    config.emplace_back("threshold", options_.threshold);
    return SerializedObject("keras.metrics", class_name_, std::move(config));
  }

 private:
  bool is_micro() const { return options_.average == "micro"; }
  Output IsPositive(const Output& p) const {
    if (options_.threshold) return ops::Greater(p, ops::ScalarLike(p, *options_.threshold));
    const Output largest = ops::Max(p, {-1}, true);
    return ops::LogicalAnd(ops::GreaterEqual(p, largest), ops::Greater(ops::Abs(p), ops::ScalarLike(p, 1e-9)));
  }

  const char* const class_name_;
  const FBetaScoreOptions options_;
};

FBetaScoreOptions ReadFBeta(ConfigReader& reader, const char* fallback) {
  FBetaScoreOptions options;
  options.name = ReadMetricName(reader, fallback);
  reader.Read("average", options.average);
  reader.Read("threshold", options.threshold);
  return options;
}

FBetaScoreOptions Named(FBetaScoreOptions options, const char* fallback) {
  if (options.name.empty()) options.name = fallback;
  return options;
}

}  // namespace

MetricPtr FBetaScore(const FBetaScoreOptions& options) {
  return std::make_shared<FScore>("FBetaScore", Named(options, "fbeta_score"));
}
MetricPtr F1Score(const FBetaScoreOptions& options) {
  if (options.beta != 1.0) {
    throw InvalidArgumentError(
        StrCat("[keras/metric] F1Score expected beta = 1; got ", options.beta, "; use FBetaScore"));
  }
  return std::make_shared<FScore>("F1Score", Named(options, "f1_score"));
}

std::vector<MetricMaker> FScoreMakers() {
  return {{"F1Score", [](ConfigReader& reader) { return F1Score(ReadFBeta(reader, "f1_score")); }},
          {"FBetaScore", [](ConfigReader& reader) {
             FBetaScoreOptions options = ReadFBeta(reader, "fbeta_score");
             reader.Read("beta", options.beta);
             return FBetaScore(options);
           }}};
}

}  // namespace cohort::keras
