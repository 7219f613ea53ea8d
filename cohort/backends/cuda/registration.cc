// RegisterCudaBackend of a build with CUDA.
#include "cohort/backends/cuda/registration.h"

#include "cohort/backends/cuda/cuda_backend.h"

namespace cohort::cuda {

void RegisterCudaBackend() { RegisterIfThereIsADriver(); }

}  // namespace cohort::cuda
