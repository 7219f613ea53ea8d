#include "cohort/runtime/plan/arena_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// How often an order is changed at most. There are fewer changes if these would need more than kMostComparisons
// comparisons of two values.
constexpr size_t kMostTries = 50;
constexpr size_t kMostComparisons = 5'000'000;

size_t Aligned(size_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

bool Meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

// Returns the start of the smallest gap of at least `bytes` between the spans in `taken` (begin, end; sorted by begin),
// or the end of the last span if there is no such gap.
size_t BestGap(const std::vector<std::pair<size_t, size_t>>& taken, size_t bytes) {
  size_t best = SIZE_MAX;
  size_t best_size = SIZE_MAX;
  size_t end = 0;  // of the spans before
  for (const auto& [begin, next_end] : taken) {
    if (begin > end && begin - end >= bytes && begin - end < best_size) {
      best = end;
      best_size = begin - end;
    }
    end = std::max(end, next_end);
  }
  return best == SIZE_MAX ? end : best;
}

ArenaOffsets PlaceInOrder(std::span<const Lifetime> lifetimes, const std::vector<size_t>& order) {
  ArenaOffsets result;
  result.offsets.assign(lifetimes.size(), 0);
  std::vector<size_t> placed;  // sorted by offset
  std::vector<std::pair<size_t, size_t>> taken;
  for (const size_t next : order) {
    const size_t bytes = Aligned(lifetimes[next].bytes);
    if (bytes == 0) continue;
    taken.clear();
    for (const size_t other : placed) {
      if (!Meet(lifetimes[next], lifetimes[other])) continue;
      taken.emplace_back(result.offsets[other], result.offsets[other] + Aligned(lifetimes[other].bytes));
    }
    const size_t offset = BestGap(taken, bytes);
    result.offsets[next] = offset;
    result.total = std::max(result.total, offset + bytes);
    const auto behind = std::upper_bound(placed.begin(), placed.end(), offset,
                                         [&](size_t at, size_t other) { return at < result.offsets[other]; });
    placed.insert(behind, next);
  }
  return result;
}

// Places the values in `order`. Then moves a value of the highest place to the front of the order and tries again, as
// long as this may help. Returns the best result.
ArenaOffsets Improve(std::span<const Lifetime> lifetimes, std::vector<size_t> order, size_t bound) {
  ArenaOffsets best = PlaceInOrder(lifetimes, order);
  ArenaOffsets last = best;
  const size_t tries = std::min(kMostTries, kMostComparisons / std::max<size_t>(1, order.size() * order.size()));
  for (size_t i = 0; i < tries && best.total > bound; ++i) {
    const auto is_highest = [&](size_t i) { return last.offsets[i] + Aligned(lifetimes[i].bytes) == last.total; };
    const auto highest = std::find_if(order.begin(), order.end(), is_highest);
    std::rotate(order.begin(), highest, highest + 1);
    last = PlaceInOrder(lifetimes, order);
    if (last.total < best.total) best = last;
  }
  return best;
}

}  // namespace

ArenaOffsets AssignOffsets(std::span<const Lifetime> lifetimes) {
  for (const Lifetime& lifetime : lifetimes) {
    if (lifetime.first > lifetime.last) {
      throw InvalidArgumentError(StrCat("[arena] expected a value's last time not to be before its first; got ",
                                        lifetime.first, "..", lifetime.last, " for ", lifetime.bytes, " bytes"));
    }
  }
  const size_t bound = MostLiveBytes(lifetimes);
  const auto duration = [&](size_t i) { return static_cast<double>(lifetimes[i].last) - lifetimes[i].first + 1; };
  const auto area = [&](size_t i) { return static_cast<double>(lifetimes[i].bytes) * duration(i); };
  std::vector<size_t> order(lifetimes.size());
  ArenaOffsets best;
  best.total = SIZE_MAX;
  const auto attempt = [&](const auto& before) {
    if (best.total == bound) return;
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), before);
    ArenaOffsets offsets = Improve(lifetimes, order, bound);
    if (offsets.total < best.total) best = std::move(offsets);
  };
  attempt([&](size_t a, size_t b) {
    return lifetimes[a].bytes != lifetimes[b].bytes ? lifetimes[a].bytes > lifetimes[b].bytes
                                                    : duration(a) > duration(b);
  });
  attempt([&](size_t a, size_t b) { return area(a) > area(b); });
  attempt([&](size_t a, size_t b) { return duration(a) > duration(b); });
  attempt([&](size_t a, size_t b) { return lifetimes[a].first < lifetimes[b].first; });
  attempt([&](size_t a, size_t b) { return lifetimes[a].last > lifetimes[b].last; });
  return best;
}

size_t MostLiveBytes(std::span<const Lifetime> lifetimes) {
  // (time, bytes) of values that begin at a time, and of values that have ended by a time.
  std::vector<std::pair<int64_t, size_t>> begins;
  std::vector<std::pair<int64_t, size_t>> ends;
  for (const Lifetime& lifetime : lifetimes) {
    begins.emplace_back(lifetime.first, Aligned(lifetime.bytes));
    ends.emplace_back(int64_t{lifetime.last} + 1, Aligned(lifetime.bytes));
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  size_t live = 0;
  size_t most = 0;
  auto ended = ends.begin();
  for (const auto& [time, bytes] : begins) {
    for (; ended != ends.end() && ended->first <= time; ++ended) live -= ended->second;
    live += bytes;
    most = std::max(most, live);
  }
  return most;
}

}  // namespace cohort
