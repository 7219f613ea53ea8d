// For tests: the type of device on which the suites of this program run.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cohort/backends/test/test_device.h"
#include "cohort/device/device_config.h"
#include "cohort/registration.h"

namespace cohort::keras {

// If the environment variable COHORT_SUITE_DEVICE is TEST, each session of this program gets a device of that type, and
// what asks for no device runs there. Aborts for any other value. ctest runs the program once with and once without the
// variable.
inline bool UseSuiteDevice() {
  const char* type = std::getenv("COHORT_SUITE_DEVICE");
  if (type == nullptr) return false;
  if (type != TestBackend::Get().type()) {
    std::fprintf(stderr,
                 "[keras/testing] expected TEST as COHORT_SUITE_DEVICE; got '%s'; unset it, or add the type to %s\n",
                 type, __FILE__);
    std::abort();
  }
  RegisterAll();
  RegisterTestBackend();
  TestBackend::Get().set_takes_unplaced_nodes(true);
  config::DeviceConfig::Global().AddPhysical({"/physical_device:TEST:0", TestBackend::Get().type()});
  return true;
}
// Its initialization makes the call before the first test. suite_device_test.cc shows that it works.
inline const bool kRunsOnTest = UseSuiteDevice();

}  // namespace cohort::keras
