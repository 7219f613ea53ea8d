// The ops of devices of type "GPU" whose work is done on the host, each with its reason. The list is complete: an op of
// the CPU's that is neither here nor has a kernel of its own cannot run on a GPU (on_host_test.cc). Three groups are on
// the host without a line here:
// - kernels that all backends share (KernelRegistry::RegisterHost), because they move values between tasks, files,
//   datasets and queues, start other kernels (calls, branches, loops), or talk to people (Print, Assert, summaries);
// - ops of this backend on strings, which lie in host memory: the kernels that call MakeHostFallback;
// - the order that RandomShuffle draws, because each of its numbers depends on those before it. The rows are moved on
//   the card.
#include "cohort/backends/cuda/kernels/host_fallback.h"
#include "cohort/backends/cuda/kernels/register.h"

namespace cohort::cuda {
namespace {

struct OnHost {
  const char* op;
  const char* why;
};

constexpr OnHost kOnHost[] = {
    {"DynamicPartition", "the shapes of its outputs depend on the data"},
    {"DynamicStitch", "the shape of its output depends on the data"},
    {"InvertPermutation", "it has to know of each number whether it is there once; permutations are short"},
    {"Unique", "the shape of its outputs depends on the data"},
    {"UniqueWithCounts", "the shape of its outputs depends on the data"},
    {"Where", "the shape of its output depends on the data"},
};

}  // namespace

void RegisterKernelsOnHost(KernelRegistry& registry) {
  for (const OnHost& entry : kOnHost) {
    registry.Register(entry.op, kGpu,
                      [&registry](const KernelConstruction& c) { return MakeHostFallback(registry, c); });
  }
}

}  // namespace cohort::cuda
