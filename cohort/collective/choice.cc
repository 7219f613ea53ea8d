#include "cohort/collective/choice.h"

#include <algorithm>
#include <bit>
#include <set>

namespace cohort::collective {
namespace {

// Up to here the number of messages counts, not their bytes: two members need one round instead of two until the bytes
// that the second one saves outweigh it; more members would send them several times.
constexpr int64_t kSmallForTwo = 256 * 1024;
constexpr int64_t kSmall = 64 * 1024;

}  // namespace

Algorithm ChooseAllReduce(DType dtype, int64_t bytes, const std::vector<int>& process_of) {
  const std::set<int> processes(process_of.begin(), process_of.end());
  if (processes.size() == 1) return Algorithm::kShared;
  if (processes.size() < process_of.size()) return Algorithm::kHierarchical;
  const auto world = process_of.size();
  if (bytes <= (world == 2 ? kSmallForTwo : kSmall)) return Algorithm::kDoubling;
  if (world == 2) return Algorithm::kRing;
  // Its partial sums do not travel: they would take twice the bytes of the elements.
  if (dtype == DType::kBfloat16) return Algorithm::kDirect;
  return std::has_single_bit(world) ? Algorithm::kHalvingDoubling : Algorithm::kRing;
}

}  // namespace cohort::collective
