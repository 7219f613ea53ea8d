// DriverSource: where the process looks for its driver, so that tests of whole programs can say what a machine has.
#pragma once

#include <string>

#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// Two functions that do for FindDriver and LookForDriver what MakeDriver and LookForDriverOfMachine do.
struct DriverSource {
  // Called once, at the first use of devices.
  Driver* (*make)(std::string* why);
  // May be called before main.
  DriverSigns (*look)();
};

// For tests: makes the process look there, and not at the machine. Call it before FindDriver and LookForDriver are
// called for the first time.
void InstallDriverSource(const DriverSource& source);

}  // namespace cohort::cuda
