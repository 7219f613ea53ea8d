// R2Score: the states are the sums from which the variances of targets and errors follow.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/metrics/metric_config.h"
#include "cohort/keras/metrics/table_shapes.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"

namespace cohort::keras {

int64_t ColumnsOf(const std::string& metric, const Shape& y_true, const Shape& y_pred) {
  const bool fits = y_pred.has_rank() && y_pred.rank() == 2 && y_pred.dim(1) >= 0 && y_true.IsCompatibleWith(y_pred);
  if (fits) return y_pred.dim(1);
  throw InvalidArgumentError(StrCat("[keras/metric] '", metric,
                                    "' expected y_true and y_pred [batch, outputs], with the ",
                                    "same known number of outputs; got y_true ", y_true, " and y_pred ", y_pred));
}

namespace {

constexpr const char* kUniform = "uniform_average";
constexpr const char* kByVariance = "variance_weighted_average";

class Determination final : public Metric {
 public:
  explicit Determination(const R2ScoreOptions& options) : Metric(options.name), options_(options) {
    if (options_.class_aggregation != kUniform && options_.class_aggregation != kByVariance) {
      throw InvalidArgumentError(StrCat("[keras/metric] R2Score expected class_aggregation to be ", kUniform, " or ",
                                        kByVariance, "; got '", options_.class_aggregation, "'"));
    }
    if (options_.num_regressors < 0) {
      throw InvalidArgumentError(
          StrCat("[keras/metric] R2Score expected num_regressors >= 0; got ", options_.num_regressors));
    }
  }

  MetricDirection direction() const override { return MetricDirection::kUp; }
  std::vector<MetricState> StatesFor(const Shape& y_true, const Shape& y_pred) const override {
    const Shape shape = {ColumnsOf(name(), y_true, y_pred)};
    return {{"squared_sum", shape}, {"sum", shape}, {"residual", shape}, {"count", shape}, {"num_samples", Shape()}};
  }
  std::vector<Output> Increments(const Output& y_true, const Output& y_pred,
                                 const Output& sample_weight) const override {
    ColumnsOf(name(), y_true.shape(), y_pred.shape());
    const Output t = CastTo(y_true, DType::kFloat64), p = CastTo(y_pred, DType::kFloat64);
    Output weights = ops::OnesLike(p);
    if (sample_weight.valid()) {
      weights = ops::Mul(weights, CastTo(AlignWeights(p, sample_weight), DType::kFloat64));
    }
    const auto sum = [](const Output& values) { return ops::Sum(values, {0}); };
    return {sum(ops::Square(t) * weights), sum(t * weights), sum(ops::SquaredDifference(t, p) * weights), sum(weights),
            CastTo(ops::Size(p, DType::kInt64), DType::kFloat64)};
  }
  Output Result(const std::vector<Output>& states) const override {
    const Output &squares = states.at(0), &sum = states.at(1), &residual = states.at(2), &samples = states.at(4);
    const Output rounded = squares - sum * DivideNoNan(sum, states.at(3));
    // The difference of two large numbers is not exactly 0 for equal targets.
    const Output constant = ops::LessEqual(rounded, squares * 1e-12);
    const Output variance = ops::SelectV2(constant, ops::ZerosLike(rounded), rounded);
    const Output scores = ops::SelectV2(constant, ops::ZerosLike(variance), 1.0 - DivideNoNan(residual, variance));
    const Output score = options_.class_aggregation == kUniform
                             ? ops::Mean(scores)
                             : DivideNoNan(ops::Sum(variance * scores), ops::Sum(variance));
    if (options_.num_regressors == 0) return score;
    const Output rest = samples - static_cast<double>(options_.num_regressors) - 1.0;
    const Output adjusted = 1.0 - DivideNoNan((1.0 - score) * (samples - 1.0), rest);
    return ops::SelectV2(ops::Greater(rest, ops::ScalarLike(rest, 0.0)), adjusted, score);
  }
  ConfigValue Serialized() const override {
    return SerializedObject("keras.metrics", "R2Score",
                            {{"name", name()},
                             {"dtype", "float32"},
                             {"class_aggregation", options_.class_aggregation},
                             {"num_regressors", options_.num_regressors}});
  }

 private:
  const R2ScoreOptions options_;
};

MetricPtr ReadR2Score(ConfigReader& reader) {
  R2ScoreOptions options;
  options.name = ReadMetricName(reader, "r2_score");
  reader.Read("num_regressors", options.num_regressors);
  // Null is Keras's None, and not the default.
  options.class_aggregation = reader.Required("class_aggregation").AsString();
  return R2Score(options);
}

}  // namespace

MetricPtr R2Score(const R2ScoreOptions& options) { return std::make_shared<Determination>(options); }

std::vector<MetricMaker> R2ScoreMakers() { return {{"R2Score", ReadR2Score}}; }

}  // namespace cohort::keras
