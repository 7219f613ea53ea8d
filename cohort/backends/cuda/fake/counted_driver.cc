#include "cohort/backends/cuda/fake/counted_driver.h"

namespace cohort::cuda {

void CountedDriver::DestroyStream(int card, StreamHandle stream) {
  {
    MutexLock lock(mu_);
    with_kernels_.erase(stream.native);
  }
  driver_.DestroyStream(card, stream);
}

void CountedDriver::CopyAsync(void* to, const void* from, size_t bytes, Copy direction, StreamHandle stream) {
  driver_.CopyAsync(to, from, bytes, direction, stream);
  MutexLock lock(mu_);
  counts_.CountCopy(direction, bytes, with_kernels_.count(stream.native) > 0);
}

void CountedDriver::Launch(const KernelCode& code, const LaunchSize& size, const void* argument, size_t bytes,
                           StreamHandle stream) {
  driver_.Launch(code, size, argument, bytes, stream);
  counts_.CountLaunch(code);
  MutexLock lock(mu_);
  with_kernels_.insert(stream.native);
}

void CountedDriver::LaunchGraph(GraphHandle graph, StreamHandle stream) {
  driver_.LaunchGraph(graph, stream);
  counts_.CountGraphLaunch();
}

}  // namespace cohort::cuda
