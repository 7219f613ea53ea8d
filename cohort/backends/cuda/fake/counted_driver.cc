#include "cohort/backends/cuda/fake/counted_driver.h"

#include <iterator>

namespace cohort::cuda {

void CountedDriver::Destroy(int card, StreamHandle stream) {
  {
    MutexLock lock(mu_);
    with_kernels_.erase(stream.native);
  }
  driver_.Destroy(card, stream);
}

void* CountedDriver::AllocatePinned(int card, size_t bytes) {
  void* const data = driver_.AllocatePinned(card, bytes);
  MutexLock lock(mu_);
  if (data != nullptr) pinned_[data] = bytes;
  return data;
}

void CountedDriver::FreePinned(int card, void* data) {
  {
    MutexLock lock(mu_);
    pinned_.erase(data);
  }
  driver_.FreePinned(card, data);
}

void CountedDriver::CopyAsync(void* to, const void* from, size_t bytes, Copy direction, StreamHandle stream) {
  driver_.CopyAsync(to, from, bytes, direction, stream);
  const auto* host = static_cast<const char*>(direction == Copy::kToHost ? to : from);
  MutexLock lock(mu_);
  const auto after = pinned_.upper_bound(host);
  const bool is_pinned = after != pinned_.begin() &&
                         host + bytes <= static_cast<const char*>(std::prev(after)->first) + std::prev(after)->second;
  counts_.CountCopy(direction, bytes, with_kernels_.count(stream.native) > 0, is_pinned);
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
