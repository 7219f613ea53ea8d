// The list of the ops of devices of type "GPU" whose work is done on the host.
#pragma once

#include <span>
#include <string_view>

namespace cohort::cuda {

// Who does the work of such an op.
enum class WorkerOnHost {
  kCpuKernel,  // the CPU's kernel; the inputs and outputs are copied
  kAnyDevice,  // a kernel that all types of devices have in common (KernelRegistry::RegisterHost)
  kBoth        // the backend's own kernel, which leaves a part of the work to the host
};

struct OpOnHost {
  std::string_view op;
  WorkerOnHost worker;
  std::string_view why;
};

// Returns the list, which is in on_host.cc.
std::span<const OpOnHost> OpsOnHost();

}  // namespace cohort::cuda
