// For tests: the type of device on which the suites of this program run.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/test/test_device.h"
#include "cohort/device/device_config.h"
#include "cohort/registration.h"

namespace cohort::keras {

// If the environment variable COHORT_SUITE_DEVICE is TEST or GPU, each session of this program gets a device of that
// type, and what asks for no device runs there. GPUs are on a fake driver or on a card (cuda::RegisterGpusForTests).
// Aborts for any other value. ctest runs the program once without the variable, and once with each value.
inline bool UseSuiteDevice() {
  const char* type = std::getenv("COHORT_SUITE_DEVICE");
  if (type == nullptr) return false;
  RegisterAll();
  if (type == TestBackend::Get().type()) {
    RegisterTestBackend();
    TestBackend::Get().set_takes_unplaced_nodes(true);
  } else if (type == cuda::CudaBackend::Get().type()) {
    cuda::RegisterGpusForTests();
    cuda::CudaBackend::Get().set_takes_unplaced_nodes(true);
  } else {
    std::fprintf(
        stderr,
        "[keras/testing] expected TEST or GPU as COHORT_SUITE_DEVICE; got '%s'; unset it, or add the type to %s\n",
        type, __FILE__);
    std::abort();
  }
  config::DeviceConfig& config = config::DeviceConfig::Global();
  // Real cards are listed already.
  if (config.ListPhysical(type).empty()) config.AddPhysical({std::string("/physical_device:") + type + ":0", type});
  return true;
}
// Its initialization makes the call before the first test. suite_device_test.cc shows that it works.
inline const bool kRunsOnTest = UseSuiteDevice();

}  // namespace cohort::keras
