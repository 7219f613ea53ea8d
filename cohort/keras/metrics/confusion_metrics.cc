// Precision and Recall. Their states are two sums of weights of predictions, from those that are true positives, false
// positives or false negatives at one threshold.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/metrics/metric_config.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
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
    if (!(threshold() >= 0.0 && threshold() <= 1.0)) {
      throw InvalidArgumentError(
          StrCat("[keras/metric] ", class_name_, " expected thresholds in [0, 1]; got ", threshold()));
    }
    if (options_.class_id && *options_.class_id < 0) {
      throw InvalidArgumentError(StrCat("[keras/metric] ", class_name_, " expected class_id >= 0; got ",
                                        *options_.class_id, "; count the classes from 0"));
    }
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
  // Throws InvalidArgumentError if the shapes do not fit.
  void CheckShapes(const Output& y_true, const Output& y_pred) const;

  const Others others_;
  const char* const class_name_;
  const ConfusionOptions options_;
};

void ConfusionRatio::CheckShapes(const Output& y_true, const Output& y_pred) const {
  const Shape& shape = y_pred.shape();
  const auto fail = [&](const std::string& expected, const std::string& advice) {
    throw InvalidArgumentError(StrCat("[keras/metric] '", name(), "' expected ", expected, "; got y_true ",
                                      y_true.shape(), " and y_pred ", shape, advice));
  };
  if (!y_true.shape().IsCompatibleWith(shape)) {
    fail("targets of the shape of the predictions", "; for integer labels make the targets one-hot");
  }
  if (!options_.class_id) return;
  if (!shape.has_rank() || shape.rank() < 2) fail("predictions [batch, ..., classes] for class_id", "");
  const int64_t classes = shape.dim(shape.rank() - 1);
  if (classes >= 0 && *options_.class_id >= classes) {
    fail(StrCat("class_id ", *options_.class_id, " to be less than the number of classes"), "");
  }
}

std::vector<Output> ConfusionRatio::Increments(const Output& y_true, const Output& y_pred,
                                               const Output& sample_weight) const {
  const Aligned aligned = AlignRanks(CastTo(y_true, DType::kFloat32), CastTo(y_pred, DType::kFloat32));
  CheckShapes(aligned.first, aligned.second);
  Output labels = aligned.first, predictions = aligned.second;
  if (options_.class_id) {
    const Output column = ops::Const(y_pred.graph(), std::vector<int64_t>{*options_.class_id});
    labels = ops::Gather(labels, column, -1);
    predictions = ops::Gather(predictions, column, -1);
  }
  Output weights = ops::OnesLike(predictions);
  if (sample_weight.valid()) weights = ops::Mul(weights, AlignWeights(predictions, sample_weight));
  // Any label but 0 is a positive example, as in Keras. A prediction that is not a number is not above the threshold.
  const Output is_positive = ops::NotEqual(labels, ops::ScalarLike(labels, 0.0));
  const Output is_above = ops::Greater(predictions, ops::ScalarLike(predictions, threshold()));
  const auto sum = [&](const Output& chosen) {
    return CastTo(ops::Sum(ops::SelectV2(chosen, weights, ops::ZerosLike(weights))), DType::kFloat64);
  };
  const Output others = others_ == Others::kFalsePositives ? ops::LogicalAnd(ops::LogicalNot(is_positive), is_above)
                                                           : ops::LogicalAnd(is_positive, ops::LogicalNot(is_above));
  return {sum(ops::LogicalAnd(is_positive, is_above)), sum(others)};
}

ConfigValue ConfusionRatio::Serialized() const {
  ConfigValue::Object config = {
      {"name", name()}, {"dtype", "float32"}, {"thresholds", nullptr}, {"top_k", nullptr}, {"class_id", nullptr}};
  if (options_.thresholds) config[2].second = *options_.thresholds;
  if (options_.class_id) config[4].second = *options_.class_id;
  return SerializedObject("keras.metrics", class_name_, std::move(config));
}

// Reads the options of Precision and Recall. A list of one threshold is accepted, as Keras accepts it.
ConfusionOptions ReadConfusion(ConfigReader& reader) {
  ConfusionOptions options;
  options.name = ReadMetricName(reader, "");
  reader.ReadBy("thresholds", [&](const ConfigValue& value) {
    if (!value.is_list()) {
      options.thresholds = value.AsDouble();
    } else if (value.AsList().size() == 1) {
      options.thresholds = value.AsList()[0].AsDouble();
    } else {
      throw InvalidArgumentError(StrCat("[keras/metric] ", reader.class_name(), " expected one threshold; got ",
                                        value.AsList().size(), "; use one metric for each threshold"));
    }
  });
  reader.ReadBy("class_id", [&](const ConfigValue& value) { options.class_id = value.AsInt(); });
  reader.OnlyDefault("top_k", nullptr);
  return options;
}

}  // namespace

MetricPtr Precision(const ConfusionOptions& options) {
  return std::make_shared<ConfusionRatio>(Others::kFalsePositives, options, "Precision", "precision");
}

MetricPtr Recall(const ConfusionOptions& options) {
  return std::make_shared<ConfusionRatio>(Others::kFalseNegatives, options, "Recall", "recall");
}

std::vector<MetricMaker> ConfusionMakers() {
  return {{"Precision", [](ConfigReader& reader) { return Precision(ReadConfusion(reader)); }},
          {"Recall", [](ConfigReader& reader) { return Recall(ReadConfusion(reader)); }}};
}

}  // namespace cohort::keras
