// The error of a call of cudart. Only sources that need headers of NVIDIA's include this file.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "cohort/backends/cuda/card_faults.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {

// Returns NVIDIA's words and the name: "out of memory (cudaErrorMemoryAllocation)".
inline std::string CudartText(cudaError_t error) {
  return StrCat(cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
}

// Returns what CardError makes of the error, or OK for cudaSuccess. A later call does not report the error again.
inline Status CudartStatus(const std::string& call, int card, cudaError_t error) {
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();
  return CardError(FaultOf(cudaGetErrorName(error)), call, card, CudartText(error));
}

}  // namespace cohort::cuda
