// CheckIntegers: looks for integers that an op does not allow, in the order of the stream.
#pragma once

#include "cohort/backends/cuda/error_words.h"
#include "cohort/backends/cuda/kernels/checks.cu.h"
#include "cohort/backends/cuda/kernels/scratch.h"

namespace cohort::cuda {

// Enqueues a check of all elements of `values`, which are integers. If one fails, `describe` makes the step's error
// from the position of the first and its value (error_words.h); the value of a uint8 is given as 0. Call it before an
// output may take the memory of `values`.
inline void CheckIntegers(const CudaCall& call, ValueCheck what, const Tensor& values,
                          ErrorWords::DescribeValue describe) {
  if (values.num_elements() == 0) return;
  ErrorWords& words = call.device().error_words();
  const bool fetched = values.dtype() != DType::kUint8;
  const ErrorWords::Check check =
      fetched ? words.Announce(call.ctx(), values, std::move(describe))
              : words.Announce(call.ctx(),
                               [describe = std::move(describe)](int64_t position) { return describe(position, 0); });
  LaunchValueCheck(call.driver(), call.stream(), what, ElementTypeOf(values.dtype()), values.raw_data(),
                   values.num_elements(), check.word, check.number);
  words.Follow(call.ctx());
}

}  // namespace cohort::cuda
