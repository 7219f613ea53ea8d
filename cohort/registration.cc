#include "cohort/registration.h"

#include <mutex>

#include "cohort/backends/register.h"
#include "cohort/checkpoint/ops.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/collective/group_directory.h"
#include "cohort/collective/kernels.h"
#include "cohort/data/graph/iterator_ops.h"
#include "cohort/ops/register.h"
#include "cohort/runtime/kernels/runtime_kernels.h"
#include "cohort/summary/kernels.h"

namespace cohort {

bool RegisterAll() {
  static std::once_flag once;
  std::call_once(once, [] {
    RegisterOps();
    RegisterCheckpointOps(OpRegistry::Global());
    RegisterDatasetOps(OpRegistry::Global());
    RegisterBackends();
    RegisterRuntimeKernels(KernelRegistry::Global());
    RegisterCheckpointKernels(KernelRegistry::Global());
    RegisterSummaryKernels(KernelRegistry::Global());
    RegisterCollectiveKernels(KernelRegistry::Global());
    RegisterDatasetKernels(KernelRegistry::Global());
    collective::RegisterCollectiveService();
    RegisterClusterSessions();
  });
  return true;
}

}  // namespace cohort
