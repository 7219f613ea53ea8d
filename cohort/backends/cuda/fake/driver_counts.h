// DriverCounts: what a driver was asked, for tests. FakeDriver keeps it, and on a card CountedDriver.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "cohort/backends/cuda/driver.h"
#include "cohort/core/mutex.h"

namespace cohort::cuda {

// All counts are since the start. Thread-safe.
class DriverCounts {
 public:
  // Return counts: of kernels that were enqueued or captured, and of launches of graphs. Kernels of cuBLASLt and cuDNN
  // do not count on a card, because the driver is not asked for them.
  int64_t launches() const { return launches_; }
  int64_t graph_launches() const { return graph_launches_; }
  // Returns how many of the kernels had `part` in the name of their C++ type.
  int64_t launches_of(const std::string& part) const;
  // Return how many bytes copies to and from the host have had, and how many of these copies were on a stream that also
  // had kernels, so that they could not run beside kernels.
  int64_t bytes_to_host() const { return bytes_to_host_; }
  int64_t bytes_from_host() const { return bytes_from_host_; }
  int64_t copies_between_kernels() const { return copies_between_kernels_; }
  // Returns how many copies to and from the host had memory of the host that is not pinned: they wait for the card.
  int64_t pageable_copies() const { return pageable_copies_; }

  // For the driver.
  void CountLaunch(const KernelCode& code);
  void CountGraphLaunch() { ++graph_launches_; }
  void CountCopy(Driver::Copy direction, size_t bytes, bool stream_has_kernels, bool host_side_is_pinned);

 private:
  std::atomic<int64_t> launches_{0};
  std::atomic<int64_t> graph_launches_{0};
  std::atomic<int64_t> bytes_to_host_{0};
  std::atomic<int64_t> bytes_from_host_{0};
  std::atomic<int64_t> copies_between_kernels_{0};
  std::atomic<int64_t> pageable_copies_{0};
  mutable Mutex mu_;
  std::map<std::string, int64_t> launches_by_name_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::cuda
