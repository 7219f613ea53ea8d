#include "cohort/registration.h"

#include <mutex>

#include "cohort/cluster/server_directory.h"
#include "cohort/kernels/register.h"
#include "cohort/ops/register.h"
#include "cohort/runtime/kernels.h"

namespace cohort {

bool RegisterAll() {
  static std::once_flag once;
  std::call_once(once, [] {
    RegisterOps();
    RegisterKernels();
    RegisterRuntimeKernels(KernelRegistry::Global());
    RegisterClusterSessions();
  });
  return true;
}

}  // namespace cohort
