// The base of metrics, metrics that are a mean (MeanMetric), and the table of Keras's names (MetricTable).
#include "cohort/keras/metrics/metric.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/serialization.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/metrics/mean_metric.h"
#include "cohort/keras/metrics/metric_config.h"
#include "cohort/keras/names.h"
#include "cohort/ops/array.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"

namespace cohort::keras {
namespace {

class MeanMetric final : public Metric {
 public:
  using Function = std::function<Output(const Output&, const Output&)>;
  MeanMetric(std::string name, Function per_example, MetricDirection direction, ConfigValue serialized = {})
      : Metric(std::move(name)),
        per_example_(std::move(per_example)),
        direction_(direction),
        serialized_(std::move(serialized)) {}

  MetricDirection direction() const override { return direction_; }
  bool uses_masks() const override { return true; }
  std::vector<MetricState> States() const override { return {{"total", Shape()}, {"count", Shape()}}; }

  std::vector<Output> Increments(const Output& y_true, const Output& y_pred,
                                 const Output& sample_weight) const override {
    const Aligned aligned = y_true.valid() ? AlignRanks(y_true, y_pred) : Aligned{y_true, y_pred};
    Output values = CastTo(per_example_(aligned.first, aligned.second), DType::kFloat32);
    Output count;
    if (sample_weight.valid()) {
      const Output weights = AlignWeights(values, sample_weight);
      count = ops::Sum(ops::Mul(ops::OnesLike(values), weights));
      values = ops::Mul(values, weights);
    } else {
      count = ops::Size(values, DType::kInt64);
    }
    return {CastTo(ops::Sum(values), DType::kFloat64), CastTo(count, DType::kFloat64)};
  }
  Output Result(const std::vector<Output>& states) const override { return DivideNoNan(states.at(0), states.at(1)); }
  ConfigValue Serialized() const override { return serialized_.is_null() ? Metric::Serialized() : serialized_; }

 private:
  const Function per_example_;
  const MetricDirection direction_;
  const ConfigValue serialized_;  // null: not known to Keras
};

using MakeMetric = MetricPtr (*)(const std::string& name);

MetricPtr NamedBinary(const std::string& name) { return BinaryAccuracy(name); }
MetricPtr NamedTopK(const std::string& name) { return TopKCategoricalAccuracy(5, name); }
MetricPtr NamedSparseTopK(const std::string& name) { return SparseTopKCategoricalAccuracy(5, name); }
MetricPtr NamedAuc(const std::string& name) {
  AucOptions options;
  options.name = name;
  return AUC(options);
}

MetricPtr NamedPrecision(const std::string& name) { return Precision({.name = name}); }
MetricPtr NamedRecall(const std::string& name) { return Recall({.name = name}); }
MetricPtr NamedBinaryIou(const std::string& name) { return BinaryIoU({.name = name}); }
MetricPtr NamedR2Score(const std::string& name) {
  R2ScoreOptions options;
  options.name = name;
  return R2Score(options);
}

// Makes a metric that counts predictions at a threshold.
template <MetricPtr (*kMake)(const ThresholdOptions&)>
MetricPtr NamedCount(const std::string& name) {
  return kMake({.name = name});
}

const NameTable<MakeMetric>& MetricTable() {
  static const NameTable<MakeMetric> table("metric", {
                                                         {"binary_accuracy", NamedBinary},
                                                         {"BinaryAccuracy", NamedBinary},
                                                         {"categorical_accuracy", CategoricalAccuracy},
                                                         {"CategoricalAccuracy", CategoricalAccuracy},
                                                         {"sparse_categorical_accuracy", SparseCategoricalAccuracy},
                                                         {"SparseCategoricalAccuracy", SparseCategoricalAccuracy},
                                                         {"top_k_categorical_accuracy", NamedTopK},
                                                         {"TopKCategoricalAccuracy", NamedTopK},
                                                         {"sparse_top_k_categorical_accuracy", NamedSparseTopK},
                                                         {"SparseTopKCategoricalAccuracy", NamedSparseTopK},
                                                         {"Accuracy", Accuracy},
                                                         {"AUC", NamedAuc},
                                                         {"auc", NamedAuc},
                                                         {"precision", NamedPrecision},
                                                         {"Precision", NamedPrecision},
                                                         {"recall", NamedRecall},
                                                         {"Recall", NamedRecall},
                                                         {"root_mean_squared_error", RootMeanSquaredError},
                                                         {"RootMeanSquaredError", RootMeanSquaredError},
                                                         {"cosine_similarity", NamedCosineSimilarity},
                                                         {"CosineSimilarity", NamedCosineSimilarity},
                                                         {"log_cosh_error", NamedLogCosh},
                                                         {"LogCoshError", NamedLogCosh},
                                                         {"Mean", Mean},
                                                         {"true_positives", NamedCount<TruePositives>},
                                                         {"TruePositives", NamedCount<TruePositives>},
                                                         {"false_positives", NamedCount<FalsePositives>},
                                                         {"FalsePositives", NamedCount<FalsePositives>},
                                                         {"true_negatives", NamedCount<TrueNegatives>},
                                                         {"TrueNegatives", NamedCount<TrueNegatives>},
                                                         {"false_negatives", NamedCount<FalseNegatives>},
                                                         {"FalseNegatives", NamedCount<FalseNegatives>},
                                                         {"binary_io_u", NamedBinaryIou},
                                                         {"BinaryIoU", NamedBinaryIou},
                                                         {"r2_score", NamedR2Score},
                                                         {"R2Score", NamedR2Score},
                                                     });
  return table;
}

// The classes of all sources, for files.
const ConfigMakers<MetricPtr>& MetricMakers() {
  static const ConfigMakers<MetricPtr> makers("metric", [] {
    std::vector<MetricMaker> all = AccuracyMakers();
    for (const auto& source : {AucMakers(), ConfusionMakers(), LossMetricMakers(), OperatingPointMakers(),
                               FScoreMakers(), IouMakers(), R2ScoreMakers()}) {
      all.insert(all.end(), source.begin(), source.end());
    }
    all.emplace_back("Mean", [](ConfigReader& reader) { return Mean(ReadMetricName(reader, "mean")); });
    return all;
  }());
  return makers;
}

bool IsAccuracy(const std::string& name) {
  return name == "accuracy" || name == "acc" || name == "ACC" || name == "Acc";
}

bool IsLoss(const std::string& name) {
  for (const std::string& known : LossNames()) {
    if (known == name) return true;
  }
  return false;
}

MetricPtr AccuracyFor(const std::string& name, const Shape& y_true, const Shape& y_pred) {
  if (!y_pred.has_rank() || y_pred.rank() == 0) {
    throw InvalidArgumentError(StrCat("[keras/metric] expected predictions of a known rank to choose the kind of '",
                                      name, "'; got ", y_pred, "; name the kind, such as categorical_accuracy"));
  }
  const int64_t outputs = y_pred.dim(y_pred.rank() - 1);
  if (outputs == 1 || y_pred.rank() == 1) return BinaryAccuracy(name);
  const bool is_sparse = y_true.has_rank() && (y_true.rank() < y_pred.rank() || y_true.dim(y_true.rank() - 1) == 1);
  return is_sparse ? SparseCategoricalAccuracy(name) : CategoricalAccuracy(name);
}

}  // namespace

ConfigValue Metric::Serialized() const {
  throw UnimplementedError(
      StrCat("[keras/metric] '", name_, "' is a metric of the program's own, which a file cannot describe"));
}

ConfigValue MetricArgument::Serialized() const {
  return metric_ != nullptr ? metric_->Serialized() : ConfigValue(name_);
}

Node* Metric::Update(const std::vector<ops::Variable>& states, const Output& y_true, const Output& y_pred,
                     const Output& sample_weight) const {
  Graph& graph = y_pred.graph();
  const NameScope scope(graph, name_);
  const std::vector<Output> increments = Increments(y_true, y_pred, sample_weight);
  if (increments.size() != states.size()) {
    throw InvalidArgumentError(StrCat("[keras/metric] expected a variable for each of the ", increments.size(),
                                      " states of '", name_, "'; got ", states.size()));
  }
  std::vector<Node*> updates;
  for (size_t i = 0; i < states.size(); ++i) updates.push_back(states[i].AssignAdd(increments[i]));
  return ops::Group(graph, updates, "update");
}

MetricPtr MeanOf(std::string name, std::function<Output(const Output&, const Output&)> per_example,
                 MetricDirection direction) {
  return std::make_shared<MeanMetric>(std::move(name), std::move(per_example), direction);
}

MetricPtr KerasMeanOf(std::string name, const std::string& class_name, const ConfigValue::Object& options,
                      MetricDirection direction,
                      std::function<Output(const Output& y_true, const Output& y_pred)> per_example) {
  ConfigValue::Object config = {{"name", name}, {"dtype", "float32"}};
  config.insert(config.end(), options.begin(), options.end());
  return std::make_shared<MeanMetric>(std::move(name), std::move(per_example), direction,
                                      SerializedObject("keras.metrics", class_name, std::move(config)));
}

MetricPtr Mean(const std::string& name) {
  return KerasMeanOf(name, "Mean", {}, MetricDirection::kNone,
                     [](const Output&, const Output& values) { return values; });
}

MetricPtr MetricByName(const std::string& name, const Shape& y_true, const Shape& y_pred) {
  if (IsAccuracy(name)) return AccuracyFor(name, y_true, y_pred);
  if (const MakeMetric* make = MetricTable().TryFind(name)) return (*make)(name);
  if (!IsLoss(name)) MetricTable().Fail(name, MetricNames());
  const LossPtr loss = LossByName(name);
  return MeanOf(
      name, [loss](const Output& t, const Output& p) { return loss->PerExample(t, p); }, MetricDirection::kDown);
}

std::vector<std::string> MetricNames() {
  std::vector<std::string> names = {"accuracy", "acc"};
  for (const std::string& name : MetricTable().names()) names.push_back(name);
  for (const std::string& name : LossNames()) {
    if (MetricTable().TryFind(name) == nullptr) names.push_back(name);
  }
  return names;
}

MetricArgument::MetricArgument(const std::string& name) : name_(name) {
  if (!IsAccuracy(name) && MetricTable().TryFind(name) == nullptr && !IsLoss(name)) {
    MetricTable().Fail(name, MetricNames());
  }
}

std::string ReadMetricName(ConfigReader& reader, const char* fallback) {
  std::string name = fallback;
  reader.Read("name", name);
  reader.Ignore("dtype");
  return name;
}

MetricArgument DeserializeMetric(const ConfigValue& value) {
  const std::string name = NameIn(value);
  if (!name.empty()) return MetricArgument(name);
  return MakeFromConfig("metric", MetricMakers(), value);
}

MetricPtr MetricArgument::Resolve(const Shape& y_true, const Shape& y_pred) const {
  return metric_ != nullptr ? metric_ : MetricByName(name_, y_true, y_pred);
}

}  // namespace cohort::keras
