// Metrics that are the mean of a loss, for Keras's files, and RootMeanSquaredError.
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/losses/elementwise_loss.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/metrics/mean_metric.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/metrics/metric_config.h"
#include "cohort/ops/math.h"

namespace cohort::keras {
namespace {

// A class of keras.metrics whose values are those of a loss. If the direction is kUp, they are those of the loss with
// the other sign.
struct LossMetric {
  const char* class_name;
  const char* default_name;
  LossPtr (*loss)(const LossOptions& options);
  MetricDirection direction = MetricDirection::kDown;
};

constexpr LossMetric kCosineSimilarity = {"CosineSimilarity", "cosine_similarity", CosineSimilarity,
                                          MetricDirection::kUp};
constexpr LossMetric kLogCosh = {"LogCoshError", "logcosh", LogCosh};
constexpr LossMetric kLossMetrics[] = {
    {"MeanSquaredError", "mean_squared_error", MeanSquaredError},
    {"MeanAbsoluteError", "mean_absolute_error", MeanAbsoluteError},
    {"MeanAbsolutePercentageError", "mean_absolute_percentage_error", MeanAbsolutePercentageError},
    {"MeanSquaredLogarithmicError", "mean_squared_logarithmic_error", MeanSquaredLogarithmicError},
    kLogCosh,
    {"Hinge", "hinge", Hinge},
    {"SquaredHinge", "squared_hinge", SquaredHinge},
    {"CategoricalHinge", "categorical_hinge", CategoricalHinge},
    {"KLDivergence", "kl_divergence", KLDivergence},
    {"Poisson", "poisson", Poisson},
    kCosineSimilarity,
};

MetricPtr MeanOfLoss(const LossMetric& kind, const std::string& name) {
  const bool negated = kind.direction == MetricDirection::kUp;
  return KerasMeanOf(name, kind.class_name, {}, kind.direction,
                     [loss = kind.loss({.name = name}), negated](const Output& t, const Output& p) {
                       const Output values = loss->PerExample(t, p);
                       return negated ? -values : values;
                     });
}

// Makes the metric of a cross-entropy, whose class is called as the loss. `options` are those of the file.
MetricPtr MeanOfCrossentropy(const char* class_name, const LossPtr& loss, const ConfigValue::Object& options) {
  return KerasMeanOf(loss->name(), class_name, options, MetricDirection::kDown,
                     [loss](const Output& t, const Output& p) { return loss->PerExample(t, p); });
}

CrossentropyOptions ReadCrossentropyMetric(ConfigReader& reader, const char* fallback) {
  CrossentropyOptions options;
  options.name = ReadMetricName(reader, fallback);
  reader.Read("from_logits", options.from_logits);
  reader.Read("label_smoothing", options.label_smoothing);
  reader.OnlyDefault("axis", -1);
  return options;
}

MetricPtr ReadBinaryCrossentropy(ConfigReader& reader) {
  const CrossentropyOptions options = ReadCrossentropyMetric(reader, "binary_crossentropy");
  return MeanOfCrossentropy("BinaryCrossentropy", BinaryCrossentropy(options),
                            {{"from_logits", options.from_logits}, {"label_smoothing", options.label_smoothing}});
}

MetricPtr ReadCategoricalCrossentropy(ConfigReader& reader) {
  const CrossentropyOptions options = ReadCrossentropyMetric(reader, "categorical_crossentropy");
  return MeanOfCrossentropy(
      "CategoricalCrossentropy", CategoricalCrossentropy(options),
      {{"from_logits", options.from_logits}, {"label_smoothing", options.label_smoothing}, {"axis", -1}});
}

MetricPtr ReadSparseCrossentropy(ConfigReader& reader) {
  SparseCrossentropyOptions options;
  options.name = ReadMetricName(reader, "sparse_categorical_crossentropy");
  reader.Read("from_logits", options.from_logits);
  reader.OnlyDefault("ignore_class", nullptr);
  reader.OnlyDefault("axis", -1);
  return MeanOfCrossentropy("SparseCategoricalCrossentropy", SparseCategoricalCrossentropy(options),
                            {{"from_logits", options.from_logits}, {"ignore_class", nullptr}, {"axis", -1}});
}

// The square root of a mean of squares, whose states it has.
class RootMeanSquares final : public Metric {
 public:
  explicit RootMeanSquares(const std::string& name)
      : Metric(name),
        squares_(KerasMeanOf(name, "RootMeanSquaredError", {}, MetricDirection::kDown,
                             [name](const Output& t, const Output& p) {
                               CheckSameShape(name, t, p);
                               return ops::SquaredDifference(CastTo(t, DType::kFloat32), CastTo(p, DType::kFloat32));
                             })) {}

  MetricDirection direction() const override { return squares_->direction(); }
  std::vector<MetricState> States() const override { return squares_->States(); }
  std::vector<Output> Increments(const Output& y_true, const Output& y_pred,
                                 const Output& sample_weight) const override {
    return squares_->Increments(y_true, y_pred, sample_weight);
  }
  Output Result(const std::vector<Output>& states) const override { return ops::Sqrt(squares_->Result(states)); }
  ConfigValue Serialized() const override { return squares_->Serialized(); }

 private:
  const MetricPtr squares_;
};

}  // namespace

MetricPtr RootMeanSquaredError(const std::string& name) { return std::make_shared<RootMeanSquares>(name); }

MetricPtr NamedCosineSimilarity(const std::string& name) { return MeanOfLoss(kCosineSimilarity, name); }
MetricPtr NamedLogCosh(const std::string& name) { return MeanOfLoss(kLogCosh, name); }

std::vector<MetricMaker> LossMetricMakers() {
  std::vector<MetricMaker> makers = {
      {"RootMeanSquaredError",
       [](ConfigReader& reader) { return RootMeanSquaredError(ReadMetricName(reader, "root_mean_squared_error")); }},
      {"BinaryCrossentropy", ReadBinaryCrossentropy},
      {"CategoricalCrossentropy", ReadCategoricalCrossentropy},
      {"SparseCategoricalCrossentropy", ReadSparseCrossentropy}};
  for (const LossMetric& kind : kLossMetrics) {
    makers.emplace_back(kind.class_name, [&kind](ConfigReader& reader) {
      return MeanOfLoss(kind, ReadMetricName(reader, kind.default_name));
    });
  }
  return makers;
}

}  // namespace cohort::keras
