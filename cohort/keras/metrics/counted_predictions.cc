#include "cohort/keras/metrics/counted_predictions.h"

#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/losses/alignment.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/math.h"

namespace cohort::keras {
namespace {

void CheckShapes(const std::string& metric, const std::optional<int64_t>& class_id, const Output& y_true,
                 const Output& y_pred) {
  const Shape& shape = y_pred.shape();
  const auto fail = [&](const std::string& expected, const std::string& advice) {
    throw InvalidArgumentError(StrCat("[keras/metric] '", metric, "' expected ", expected, "; got y_true ",
                                      y_true.shape(), " and y_pred ", shape, advice));
  };
  if (!y_true.shape().IsCompatibleWith(shape)) {
    fail("targets of the shape of the predictions", "; for integer labels make the targets one-hot");
  }
  if (!class_id) return;
  if (!shape.has_rank() || shape.rank() < 2) fail("predictions [batch, ..., classes] for class_id", "");
  const int64_t classes = shape.dim(shape.rank() - 1);
  if (classes >= 0 && *class_id >= classes) {
    fail(StrCat("class_id ", *class_id, " to be less than the number of classes"), "");
  }
}

}  // namespace

Output CountedPredictions::IsAbove(double threshold) const {
  return ops::Greater(predictions, ops::ScalarLike(predictions, threshold));
}

Output CountedPredictions::WeightOf(const Output& chosen) const {
  return CastTo(ops::Sum(ops::SelectV2(chosen, weights, ops::ZerosLike(weights))), DType::kFloat64);
}

CountedPredictions CountPredictions(const std::string& metric, const std::optional<int64_t>& class_id,
                                    const Output& y_true, const Output& y_pred, const Output& sample_weight) {
  const Aligned aligned = AlignRanks(CastTo(y_true, DType::kFloat32), CastTo(y_pred, DType::kFloat32));
  CheckShapes(metric, class_id, aligned.first, aligned.second);
  Output labels = aligned.first, predictions = aligned.second;
  if (class_id) {
    const Output column = ops::Const(y_pred.graph(), std::vector<int64_t>{*class_id});
    labels = ops::Gather(labels, column, -1);
    predictions = ops::Gather(predictions, column, -1);
  }
  Output weights = ops::OnesLike(predictions);
  if (sample_weight.valid()) weights = ops::Mul(weights, AlignWeights(predictions, sample_weight));
  return {ops::NotEqual(labels, ops::ScalarLike(labels, 0.0)), predictions, weights};
}

void CheckThreshold(const char* class_name, double threshold) {
  if (threshold >= 0.0 && threshold <= 1.0) return;
  throw InvalidArgumentError(StrCat("[keras/metric] ", class_name, " expected thresholds in [0, 1]; got ", threshold));
}

void CheckClassId(const char* class_name, const std::optional<int64_t>& class_id) {
  if (!class_id || *class_id >= 0) return;
  throw InvalidArgumentError(
      StrCat("[keras/metric] ", class_name, " expected class_id >= 0; got ", *class_id, "; count the classes from 0"));
}

}  // namespace cohort::keras
