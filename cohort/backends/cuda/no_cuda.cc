// MakeDriver and LookForDriverOfMachine of a build without CUDA.
#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

Driver* MakeDriver(std::string* why) {
  *why = "this build has no CUDA: it was configured without the CUDA toolkit 13 or with -DCOHORT_WITH_CUDA=OFF";
  return nullptr;
}

DriverSigns LookForDriverOfMachine() { return DriverSigns::kNotBuilt; }

}  // namespace cohort::cuda
