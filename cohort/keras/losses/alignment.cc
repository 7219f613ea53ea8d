#include "cohort/keras/losses/alignment.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"

namespace cohort::keras {
namespace {

bool EndsInOne(const Output& x) { return x.shape().rank() > 0 && x.shape().dim(x.shape().rank() - 1) == 1; }

// Removes the last dimension of 1 of the tensor with the higher rank, or adds one to the vector.
void AlignLonger(Output& longer, Output& shorter) {
  if (longer.shape().rank() != shorter.shape().rank() + 1 || !EndsInOne(longer)) return;
  if (shorter.shape().rank() == 1) {
    shorter = ops::ExpandDims(shorter, -1);
  } else {
    longer = ops::Squeeze(longer, {-1});
  }
}

}  // namespace

Output CastTo(Output x, DType dtype) { return x.dtype() == dtype ? x : ops::Cast(x, dtype); }

Aligned AlignRanks(Output first, Output second) {
  if (first.shape().has_rank() && second.shape().has_rank()) {
    AlignLonger(first, second);
    AlignLonger(second, first);
  }
  return {first, second};
}

Output AlignWeights(const Output& values, Output weights) {
  weights = CastTo(weights, DType::kFloat32);
  if (!values.shape().has_rank() || !weights.shape().has_rank()) return weights;
  while (weights.shape().rank() > values.shape().rank() && EndsInOne(weights)) weights = ops::Squeeze(weights, {-1});
  while (weights.shape().rank() > 0 && weights.shape().rank() < values.shape().rank()) {
    weights = ops::ExpandDims(weights, -1);
  }
  return weights;
}

Output MaskWeights(const Output& values, const Output& mask) {
  const Output weights = AlignWeights(values, mask);
  if (!values.shape().has_rank() || weights.shape().rank() <= values.shape().rank()) return weights;
  throw InvalidArgumentError(StrCat("[keras/loss] expected a value for each step of predictions with a mask ",
                                    mask.shape(), "; got values ", values.shape(),
                                    "; give targets of the rank of the predictions"));
}

Output SparseLabels(Output y_true, const Output& y_pred) {
  const Shape& labels = y_true.shape();
  const Shape& predictions = y_pred.shape();
  if (labels.has_rank() && predictions.has_rank() && labels.rank() == predictions.rank() && EndsInOne(y_true)) {
    y_true = ops::Squeeze(y_true, {-1});
  }
  if (y_true.dtype() == DType::kInt32 || y_true.dtype() == DType::kInt64) return y_true;
  return ops::Cast(y_true, DType::kInt64);
}

Output DivideNoNan(Output a, Output b) {
  const Output zero = ops::ScalarLike(b, 0.0);
  const Output none = ops::Equal(b, zero);
  return ops::SelectV2(none, zero, ops::Div(a, ops::SelectV2(none, ops::ScalarLike(b, 1.0), b)));
}

}  // namespace cohort::keras
