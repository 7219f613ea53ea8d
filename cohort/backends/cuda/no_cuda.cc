// MakeDriver and LookForDriverOfMachine of a build without CUDA.
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/not_built.h"

namespace cohort::cuda {

Driver* MakeDriver(std::string* why) {
  *why = kNotBuilt;
  return nullptr;
}

DriverSigns LookForDriverOfMachine() { return DriverSigns::kNotBuilt; }

}  // namespace cohort::cuda
