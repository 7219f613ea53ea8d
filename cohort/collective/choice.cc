#include "cohort/collective/choice.h"

#include <set>

namespace cohort::collective {
namespace {

// Up to here a message's latency counts, not its bytes.
constexpr int64_t kSmallBytes = 16 * 1024;

}  // namespace

Algorithm ChooseAllReduce(DType dtype, int64_t bytes, const std::vector<int>& process_of) {
  const std::set<int> processes(process_of.begin(), process_of.end());
  if (processes.size() < process_of.size()) return Algorithm::kHierarchical;
  if (bytes <= kSmallBytes) return Algorithm::kDoubling;
  // Its partial sums do not travel: they would take twice the bytes of the elements.
  if (dtype == DType::kBfloat16) return Algorithm::kDirect;
  return Algorithm::kRing;
}

}  // namespace cohort::collective
