// RegisterCudaBackend of a build without CUDA. Its programs contain nothing of the backend; only tests link it.
#include "cohort/backends/cuda/registration.h"

namespace cohort::cuda {

void RegisterCudaBackend() {}

}  // namespace cohort::cuda
