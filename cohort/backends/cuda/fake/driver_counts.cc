#include "cohort/backends/cuda/fake/driver_counts.h"

namespace cohort::cuda {

int64_t DriverCounts::launches_of(const std::string& part) const {
  MutexLock lock(mu_);
  int64_t launches = 0;
  for (const auto& [name, count] : launches_by_name_) launches += name.find(part) == std::string::npos ? 0 : count;
  return launches;
}

void DriverCounts::CountLaunch(const KernelCode& code) {
  ++launches_;
  MutexLock lock(mu_);
  ++launches_by_name_[code.name];
}

void DriverCounts::CountCopy(Driver::Copy direction, size_t bytes, bool stream_has_kernels, bool host_side_is_pinned) {
  if (direction == Driver::Copy::kOnDevice) return;
  (direction == Driver::Copy::kToHost ? bytes_to_host_ : bytes_from_host_) += static_cast<int64_t>(bytes);
  if (stream_has_kernels) ++copies_between_kernels_;
  if (bytes > 0 && !host_side_is_pinned) ++pageable_copies_;
}

}  // namespace cohort::cuda
