// CopyStrided: enqueues the copy that a StridedLayout describes.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/kernels/cuda_call.h"
#include "cohort/backends/strided_layout.h"
#include "cohort/core/tensor.h"

namespace cohort::cuda {

// Copies from element `from` of `source` to element `to` of `target`, which have one dtype. Does nothing if the layout
// has no elements. Requires: the two do not overlap.
void CopyStrided(const CudaCall& call, StridedLayout layout, const Tensor& source, int64_t from, Tensor& target,
                 int64_t to = 0);

}  // namespace cohort::cuda
