#include "cohort/core/memory_space.h"

#include <algorithm>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr int kOrdinalBits = 24;
constexpr uint32_t kMaxOrdinal = (uint32_t{1} << kOrdinalBits) - 1;
constexpr size_t kMaxKinds = 255;

// The device types that have a memory of their own, in the order in which they were first named. Kind k is kinds[k -
// 1].
struct MemoryKinds {
  Mutex mu;
  std::vector<std::string> kinds COHORT_GUARDED_BY(mu);

  static MemoryKinds& Global() {
    static auto* const kinds = new MemoryKinds;
    return *kinds;
  }
};

}  // namespace

MemorySpace MemorySpace::OfDevice(std::string_view device_type, int64_t ordinal) {
  if (ordinal < 0 || ordinal > kMaxOrdinal) {
    throw InvalidArgumentError(
        StrCat("[memory] expected an ordinal in [0, ", kMaxOrdinal, "]; got ", ordinal, " for ", device_type));
  }
  MemoryKinds& all = MemoryKinds::Global();
  MutexLock lock(all.mu);
  auto found = std::find(all.kinds.begin(), all.kinds.end(), device_type);
  if (found == all.kinds.end()) {
    if (all.kinds.size() == kMaxKinds) {
      throw ResourceExhaustedError(StrCat("[memory] expected at most ", kMaxKinds,
                                          " device types with a memory of their own; got one more: ", device_type));
    }
    found = all.kinds.emplace(all.kinds.end(), device_type);
  }
  const auto kind = static_cast<uint32_t>(found - all.kinds.begin()) + 1;
  return MemorySpace((kind << kOrdinalBits) | static_cast<uint32_t>(ordinal));
}

std::string MemorySpace::ToString() const {
  if (is_host()) return "host";
  MemoryKinds& all = MemoryKinds::Global();
  MutexLock lock(all.mu);
  return StrCat(all.kinds[(word_ >> kOrdinalBits) - 1], ":", word_ & kMaxOrdinal);
}

}  // namespace cohort
