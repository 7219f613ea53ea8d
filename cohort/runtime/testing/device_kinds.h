// The device types on which a test suite runs all its tests: CPU, TEST and GPU, which is on a fake driver or on a card.
// The suites of the executor, of sessions and of clusters use this header.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/register.h"
#include "cohort/backends/test/test_device.h"
#include "cohort/backends/test/test_kernels.h"
#include "cohort/ops/register.h"
#include "cohort/runtime/kernels/runtime_kernels.h"
#include "cohort/runtime/session.h"

namespace cohort::testing {

// Registers ops, kernels, the TEST backend, which stands for an accelerator, and GPUs.
inline bool RegisterForDeviceKinds() {
  RegisterOps();
  RegisterBackends();
  RegisterRuntimeKernels(KernelRegistry::Global());
  RegisterTestBackend();
  cuda::RegisterGpusForTests();
  return true;
}
inline const bool kDeviceKindsRegistered = RegisterForDeviceKinds();

// Gives the ops that have a kernel for CPU alone, such as those of a test, kernels for the other types.
inline void RegisterKernelsForDeviceKinds() {
  RegisterTestKernels(KernelRegistry::Global());
  cuda::RegisterFallbacksOfTests(KernelRegistry::Global());
}

// A test whose parameter is a device type.
class DeviceKindTest : public ::testing::TestWithParam<const char*> {
 protected:
  static std::string device(int id = 0) { return std::string("/device:") + GetParam() + ":" + std::to_string(id); }
  static bool is_cpu() { return GetParam() == std::string("CPU"); }
  // Returns whether the type's backend makes one kernel of several elementwise nodes.
  static bool has_chains() { return GetParam() != std::string("TEST"); }
  // Returns a config with `count` devices of the type under test.
  static SessionConfig config(int count = 1) {
    SessionConfig config;
    config.device_count[GetParam()] = count;
    return config;
  }
};

// A graph with a scope: nodes that the calling thread adds to the graph are placed on `device`, unless they request
// another device.
struct GraphOnDevice {
  explicit GraphOnDevice(const std::string& device) : scope(graph, device) {}
  Graph graph;
  DeviceScope scope;
};

inline auto AllDeviceKinds() { return ::testing::Values("CPU", "TEST", "GPU"); }
inline std::string DeviceKindName(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace cohort::testing
