#include "cohort/device/memory/memory_use.h"

#include <map>
#include <memory>

#include "cohort/core/mutex.h"

namespace cohort {
namespace {

class Counters {
 public:
  static Counters& Get() {
    static auto* const counters = new Counters;
    return *counters;
  }
  MemoryUse& Of(const std::string& device) {
    MutexLock lock(mu_);
    std::unique_ptr<MemoryUse>& counter = by_device_[device];
    if (counter == nullptr) counter = std::make_unique<MemoryUse>();
    return *counter;
  }
  MemoryUse* Find(const std::string& device) {
    MutexLock lock(mu_);
    const auto found = by_device_.find(device);
    return found == by_device_.end() ? nullptr : found->second.get();
  }

 private:
  Mutex mu_;
  std::map<std::string, std::unique_ptr<MemoryUse>> by_device_ COHORT_GUARDED_BY(mu_);
};

}  // namespace

MemoryUse& MemoryUse::Of(const std::string& device) { return Counters::Get().Of(device); }
MemoryUse* MemoryUse::Find(const std::string& device) { return Counters::Get().Find(device); }

void MemoryUse::Add(size_t bytes) {
  const size_t now = current_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  size_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

}  // namespace cohort
