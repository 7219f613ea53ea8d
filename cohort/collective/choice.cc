#include "cohort/collective/choice.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

namespace cohort::collective {
namespace {

// Up to here the number of messages counts, not their bytes: two members need one round instead of two until the bytes
// that the second one saves outweigh it; more members would send them several times.
constexpr int64_t kSmallForTwo = 256 * 1024;
constexpr int64_t kSmall = 64 * 1024;

// Several hosts with as many processes each, two or more. With h hosts of p processes, each host then sends
// 2 (h - 1) / h of the bytes by the hierarchy, 2 (h p - 1) / (h p) by a ring and p times as many as the hierarchy by
// halving-doubling and the direct algorithm. Of hosts with unequal numbers the larger ones bring all they have to the
// few that have their like elsewhere: more bytes inside the host than the link saves, perhaps.
bool AreEvenHosts(const std::set<Location>& processes) {
  std::map<int, int> of_host;
  for (const Location& process : processes) ++of_host[process.host];
  const int first = of_host.begin()->second;
  return of_host.size() > 1 && first > 1 &&
         std::all_of(of_host.begin(), of_host.end(), [&](const auto& host) { return host.second == first; });
}

}  // namespace

Algorithm ChooseAllReduce(DType dtype, int64_t bytes, const std::vector<Location>& locations) {
  const std::set<Location> processes(locations.begin(), locations.end());
  if (processes.size() == 1) return Algorithm::kShared;
  if (processes.size() < locations.size()) return Algorithm::kHierarchical;
  const auto world = locations.size();
  if (bytes <= (world == 2 ? kSmallForTwo : kSmall)) return Algorithm::kDoubling;
  if (world == 2) return Algorithm::kRing;
  // Of bfloat16 too, though partial sums travel as float32 half of the way: 3 / 2 of the bytes above.
  if (AreEvenHosts(processes)) return Algorithm::kHierarchical;
  // Its partial sums do not travel: they would take twice the bytes of the elements.
  if (dtype == DType::kBfloat16) return Algorithm::kDirect;
  return std::has_single_bit(world) ? Algorithm::kHalvingDoubling : Algorithm::kRing;
}

}  // namespace cohort::collective
