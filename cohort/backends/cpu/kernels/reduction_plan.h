// The dimensions of a reduction, with neighbours of the same kind merged and those of 1 dropped, so that kept
// and reduced ones alternate. Internal to backends/cpu/kernels.
#pragma once

#include <array>
#include <cstdint>

#include "cohort/core/tensor.h"

namespace cohort::cpu {

struct ReductionPlan {
  int rank = 0;
  std::array<int64_t, Shape::kMaxRank> dims;
  std::array<bool, Shape::kMaxRank> reduced;
  // Elements from one index to the next in the input, and in the output (0 along a reduced dimension).
  std::array<int64_t, Shape::kMaxRank> in_stride;
  std::array<int64_t, Shape::kMaxRank> out_stride;
  Shape output;
  int64_t in_elements = 0;
  int64_t out_elements = 0;
};

// `axes` int32 or int64, negative ones from the end. Throws InvalidArgumentError for one out of range or
// given twice.
ReductionPlan PlanReduction(const Shape& input, const Tensor& axes, bool keep_dims);

}  // namespace cohort::cpu
