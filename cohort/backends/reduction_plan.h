// ReductionPlan: the dimensions of a reduction. Neighbours of the same kind are merged and dimensions of size 1 are
// dropped, so that kept and reduced dimensions alternate. Internal to backends.
#pragma once

#include <array>
#include <cstdint>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/tensor.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {

// `rank` dimensions, from the outermost to the innermost, and the output's shape.
struct ReductionPlan {
  int rank = 0;
  std::array<int64_t, Shape::kMaxRank> dims;
  std::array<bool, Shape::kMaxRank> reduced;
  // Steps in elements from one index to the next, in the input and in the output. In the output it is 0 along a reduced
  // dimension.
  std::array<int64_t, Shape::kMaxRank> in_stride;
  std::array<int64_t, Shape::kMaxRank> out_stride;
  Shape output;
  int64_t in_elements = 0;
  int64_t out_elements = 0;
};

// Returns a number with bit i set for axis i. Throws as PlanReduction does.
inline uint32_t ReductionAxisBits(const Tensor& axes, int rank) {
  uint32_t bits = 0;
  const bool narrow = axes.dtype() == DType::kInt32;
  for (int64_t i = 0; i < axes.num_elements(); ++i) {
    const int64_t axis = narrow ? axes.data<int32_t>()[i] : axes.data<int64_t>()[i];
    const uint32_t bit = 1u << ops::NormalizeAxis(axis, rank, "reduction axis");
    if ((bits & bit) != 0) throw InvalidArgumentError(StrCat("reduction axis ", axis, " is given twice"));
    bits |= bit;
  }
  return bits;
}

// `axes` is int32 or int64; negative axes count from the end. Throws InvalidArgumentError for an axis that is out of
// range or given twice.
inline ReductionPlan PlanReduction(const Shape& input, const Tensor& axes, bool keep_dims) {
  ReductionPlan plan;
  const uint32_t bits = ReductionAxisBits(axes, input.rank());
  plan.in_elements = input.num_elements();
  for (int i = 0; i < input.rank(); ++i) {
    const bool reduced = ((bits >> i) & 1u) != 0;
    const int64_t dim = input.dim(i);
    if (!reduced || keep_dims) plan.output.AddDim(reduced ? 1 : dim);
    if (dim == 1) continue;
    const size_t last = static_cast<size_t>(plan.rank - 1);
    if (plan.rank > 0 && plan.reduced[last] == reduced) {
      plan.dims[last] *= dim;
      continue;
    }
    plan.dims[static_cast<size_t>(plan.rank)] = dim;
    plan.reduced[static_cast<size_t>(plan.rank++)] = reduced;
  }
  plan.out_elements = plan.output.num_elements();
  int64_t in_stride = 1, out_stride = 1;
  for (int i = plan.rank - 1; i >= 0; --i) {
    const size_t at = static_cast<size_t>(i);
    plan.in_stride[at] = in_stride;
    in_stride *= plan.dims[at];
    plan.out_stride[at] = plan.reduced[at] ? 0 : out_stride;
    if (!plan.reduced[at]) out_stride *= plan.dims[at];
  }
  return plan;
}

}  // namespace cohort
