// CheckIntegers: looks for integers that an op does not allow, in the order of the stream.
#pragma once

#include "cohort/backends/cuda/error_words.h"
#include "cohort/backends/cuda/kernels/checks.cu.h"
#include "cohort/backends/cuda/kernels/scratch.h"

namespace cohort::cuda {

// Enqueues a check of all elements of `values`, which are integers. If one fails, `describe` makes the step's error
// from the position of the first and its value (error_words.h). Call it before an output may take the memory of
// `values`.
inline void CheckIntegers(const CudaCall& call, ValueCheck what, const Tensor& values, ErrorWords::Describe describe) {
  if (values.num_elements() == 0) return;
  ErrorWords& words = call.device().error_words();
  const ErrorWords::Check check = words.Announce(call.ctx(), std::move(describe));
  LaunchValueCheck(call.driver(), call.stream(), what, ElementTypeOf(values.dtype()), values.raw_data(),
                   values.num_elements(), check.word, check.number);
  words.Follow(call.ctx());
}

}  // namespace cohort::cuda
