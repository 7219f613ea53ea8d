// The accuracies of metric.h: means of truth values.
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/keras/metrics/mean_metric.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/metrics/metric_config.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/nn.h"

namespace cohort::keras {
namespace {

Output Truth(const Output& equal) { return ops::Cast(equal, DType::kFloat32); }

MetricPtr AccuracyOf(const std::string& name, const std::string& class_name, const ConfigValue::Object& options,
                     std::function<Output(const Output&, const Output&)> is_right) {
  return KerasMeanOf(name, class_name, options, MetricDirection::kUp,
                     [is_right](const Output& t, const Output& p) { return Truth(is_right(t, p)); });
}

// Whether labels [...] are among the k largest of predictions [..., classes].
Output IsInTopK(const Output& labels, const Output& y_pred, int k) {
  const Output predictions = CastTo(y_pred, DType::kFloat32);
  const Shape& shape = predictions.shape();
  if (!shape.has_rank() || shape.rank() < 2 || shape.dim(shape.rank() - 1) < 0) {
    throw InvalidArgumentError(
        StrCat("[keras/metric] a top-k accuracy expected predictions [batch, ..., classes]; got ", shape));
  }
  if (shape.rank() == 2) return ops::InTopK(predictions, labels, k);
  const Output flat =
      ops::InTopK(ops::Reshape(predictions, {-1, shape.dim(shape.rank() - 1)}), ops::Reshape(labels, {-1}), k);
  return ops::Reshape(flat, ops::ShapeOf(labels));
}

int CheckedK(int k) {
  if (k > 0) return k;
  throw InvalidArgumentError(StrCat("[keras/metric] a top-k accuracy expected k > 0; got ", k));
}

}  // namespace

MetricPtr Accuracy(const std::string& name) {
  return AccuracyOf(name, "Accuracy", {}, [](const Output& t, const Output& p) {
    return ops::Equal(CastTo(t, DType::kFloat32), CastTo(p, DType::kFloat32));
  });
}

MetricPtr BinaryAccuracy(const std::string& name, double threshold) {
  return AccuracyOf(name, "BinaryAccuracy", {{"threshold", threshold}}, [threshold](const Output& t, const Output& p) {
    const Output above = ops::Greater(p, ops::ScalarLike(p, threshold));
    return ops::Equal(CastTo(t, DType::kFloat32), Truth(above));
  });
}

MetricPtr CategoricalAccuracy(const std::string& name) {
  return AccuracyOf(name, "CategoricalAccuracy", {}, [](const Output& t, const Output& p) {
    return ops::Equal(ops::ArgMax(t, -1), ops::ArgMax(p, -1));
  });
}

MetricPtr SparseCategoricalAccuracy(const std::string& name) {
  return AccuracyOf(name, "SparseCategoricalAccuracy", {}, [](const Output& t, const Output& p) {
    const Output labels = SparseLabels(t, p);
    return ops::Equal(labels, ops::ArgMax(p, -1, labels.dtype()));
  });
}

MetricPtr TopKCategoricalAccuracy(int k, const std::string& name) {
  return AccuracyOf(name, "TopKCategoricalAccuracy", {{"k", k}},
                    [k = CheckedK(k)](const Output& t, const Output& p) { return IsInTopK(ops::ArgMax(t, -1), p, k); });
}

MetricPtr SparseTopKCategoricalAccuracy(int k, const std::string& name) {
  return AccuracyOf(name, "SparseTopKCategoricalAccuracy", {{"k", k}},
                    [k = CheckedK(k)](const Output& t, const Output& p) { return IsInTopK(SparseLabels(t, p), p, k); });
}

std::vector<MetricMaker> AccuracyMakers() {
  const auto named = [](const char* fallback, MetricPtr (*make)(const std::string&)) {
    return [fallback, make](ConfigReader& r) { return make(ReadMetricName(r, fallback)); };
  };
  const auto read_k = [](ConfigReader& r) {
    int k = 5;
    r.Read("k", k);
    return k;
  };
  return {{"Accuracy", named("accuracy", Accuracy)},
          {"BinaryAccuracy",
           [](ConfigReader& r) {
             double threshold = 0.5;
             r.Read("threshold", threshold);
             return BinaryAccuracy(ReadMetricName(r, "binary_accuracy"), threshold);
           }},
          {"CategoricalAccuracy", named("categorical_accuracy", CategoricalAccuracy)},
          {"SparseCategoricalAccuracy", named("sparse_categorical_accuracy", SparseCategoricalAccuracy)},
          {"TopKCategoricalAccuracy",
           [read_k](ConfigReader& r) {
             return TopKCategoricalAccuracy(read_k(r), ReadMetricName(r, "top_k_categorical_accuracy"));
           }},
          {"SparseTopKCategoricalAccuracy", [read_k](ConfigReader& r) {
             r.Ignore("from_sorted_ids");
             return SparseTopKCategoricalAccuracy(read_k(r), ReadMetricName(r, "sparse_top_k_categorical_accuracy"));
           }}};
}

}  // namespace cohort::keras
