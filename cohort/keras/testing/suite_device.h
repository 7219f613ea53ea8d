// For tests: the type of device on which the suites of this program run.
#pragma once

#include <cstdlib>
#include <string>

#include "cohort/backends/test/test_device.h"
#include "cohort/device/logical_devices.h"
#include "cohort/registration.h"

namespace cohort::keras {

// If the environment variable COHORT_SUITE_DEVICE is TEST, each session of this program gets a device of that type, and
// what asks for no device runs there. ctest runs the program once with and once without the variable.
inline bool UseSuiteDevice() {
  const char* type = std::getenv("COHORT_SUITE_DEVICE");
  if (type == nullptr || type != TestBackend::Get().type()) return false;
  RegisterAll();
  RegisterTestBackend();
  TestBackend::Get().set_takes_unplaced_nodes(true);
  config::DeviceConfig::Global().AddPhysical({"/physical_device:TEST:0", TestBackend::Get().type()});
  return true;
}
inline const bool kRunsOnTest = UseSuiteDevice();

}  // namespace cohort::keras
