// ReductionPlan: the dimensions of a reduction. Neighbours of the same kind are merged and dimensions of size 1 are
// dropped, so that kept and reduced dimensions alternate. Internal to backends/cpu/kernels.
#pragma once

#include <array>
#include <cstdint>

#include "cohort/core/tensor.h"

namespace cohort::cpu {

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

// `axes` is int32 or int64; negative axes count from the end. Throws InvalidArgumentError for an axis that is out of
// range or given twice.
ReductionPlan PlanReduction(const Shape& input, const Tensor& axes, bool keep_dims);

}  // namespace cohort::cpu
