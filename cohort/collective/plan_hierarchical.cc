// All-reduce inside processes first, then between the processes of a host, then between hosts. With one process only it
// is the direct algorithm.
#include <map>

#include "cohort/collective/plan_builder.h"

namespace cohort::collective {
namespace {

using Ranks = std::vector<int>;

// Members that reduce together, each a share of what the level is about. Only the first few own a share: as many as
// there are everywhere, so that each owner has its like in every other circle.
struct Circle {
  Ranks ranks;
  int index = 0;  // of this member among them
  int owners = 0;

  int size() const { return static_cast<int>(ranks.size()); }
  int at(int number) const { return ranks[static_cast<size_t>(number)]; }
};

// What one member takes part in.
struct Levels {
  std::vector<Circle> circles;  // from the innermost one
  Circle ring;                  // of the outermost level, without shares; one member where a circle holds all
};

Circle CircleOf(Ranks ranks, int rank, size_t owners) {
  const auto index = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  return {std::move(ranks), index, static_cast<int>(owners)};
}

using Host = std::map<int, Ranks>;  // its processes
using World = std::map<int, Host>;

// Rank number `index` of process number `process` of the host.
int RankAt(const Host& host, int process, int index) {
  return std::next(host.begin(), process)->second[static_cast<size_t>(index)];
}

Levels LevelsOf(int rank, const std::vector<Location>& locations) {
  World world;
  for (size_t i = 0; i < locations.size(); ++i) {
    world[locations[i].host][locations[i].process].push_back(static_cast<int>(i));
  }
  size_t fewest_processes = locations.size();  // of a host
  size_t fewest_ranks = locations.size();      // of a process
  for (const auto& [number, host] : world) {
    fewest_processes = std::min(fewest_processes, host.size());
    for (const auto& [process, ranks] : host) fewest_ranks = std::min(fewest_ranks, ranks.size());
  }
  const Location& place = locations[static_cast<size_t>(rank)];
  const Host& here = world[place.host];
  Levels levels;
  const Circle& inside = levels.circles.emplace_back(CircleOf(here.at(place.process), rank, fewest_ranks));
  const int lane = inside.index;
  if (lane >= inside.owners) return levels;  // others own it all
  Ranks peers;
  for (const auto& [process, ranks] : here) peers.push_back(ranks[static_cast<size_t>(lane)]);
  if (world.size() == 1) {
    levels.ring = CircleOf(std::move(peers), rank, 0);
    return levels;
  }
  const Circle& between = levels.circles.emplace_back(CircleOf(std::move(peers), rank, fewest_processes));
  const int process = between.index;
  if (process >= between.owners) return levels;
  peers.clear();
  for (const auto& [number, host] : world) peers.push_back(RankAt(host, process, lane));
  levels.ring = CircleOf(std::move(peers), rank, 0);
  return levels;
}

class Appender {
 public:
  Appender(PlanBuilder& plan, Levels levels) : plan_(plan), levels_(std::move(levels)) {}

  // All-reduce of `range` by the levels from `level` on. What this member adds lies in `own`.
  void Append(size_t level, Range range, Space own) {
    if (level == levels_.circles.size()) {
      AppendRingAllReduce(plan_, levels_.ring.ranks, levels_.ring.index, range, own);
      return;
    }
    const Circle& circle = levels_.circles[level];
    if (circle.size() == 1) return Append(level + 1, range, own);
    const auto share = [&](int owner) {
      const Range within = PartOf(range.size(), circle.owners, owner);
      return Range{range.begin + within.begin, range.begin + within.end};
    };
    // The neighbours who own a share get what this member adds to it.
    ForOtherOwners(circle, [&](int owner) { SendAll(circle.at(owner), share(owner), own); });
    if (circle.index < circle.owners) {
      const bool outermost = level + 1 == levels_.circles.size() && levels_.ring.size() == 1;
      Collect(circle, share(circle.index), own, outermost);
      if (!outermost) {
        Append(level + 1, share(circle.index), plan_.partials());
        Spread(circle, share(circle.index));
      }
    }
    ForOtherOwners(circle, [&](int owner) {
      const Range range_of_owner = share(owner);
      for (int64_t i = 0; i < plan_.Segments(range_of_owner); ++i) {
        plan_.Receive(circle.at(owner), plan_.Segment(range_of_owner, i));
      }
    });
  }

 private:
  // Beginning with the next one, so that not all send to the same at once.
  template <typename Do>
  static void ForOthers(const Circle& circle, const Do& act) {
    for (int offset = 1; offset < circle.size(); ++offset) act((circle.index + offset) % circle.size());
  }
  template <typename Do>
  static void ForOtherOwners(const Circle& circle, const Do& act) {
    ForOthers(circle, [&](int other) {
      if (other < circle.owners) act(other);
    });
  }
  void SendAll(int peer, Range range, Space from) {
    for (int64_t i = 0; i < plan_.Segments(range); ++i) plan_.Send(peer, plan_.Segment(range, i), from);
  }
  // Reduces this member's share; where that is the whole sum, every segment goes out at once.
  void Collect(const Circle& circle, Range share, Space own, bool outermost) {
    for (int64_t i = 0; i < plan_.Segments(share); ++i) {
      const Range segment = plan_.Segment(share, i);
      Space from = own;
      int left = circle.size() - 1;
      ForOthers(circle, [&](int other) {
        const bool final = outermost && --left == 0;
        const Space to = final ? Space::kOutput : plan_.partials();
        plan_.Reduce(circle.at(other), segment, from, to, final);
        from = to;
      });
      if (outermost) ForOthers(circle, [&](int other) { plan_.Send(circle.at(other), segment, Space::kOutput); });
    }
  }
  void Spread(const Circle& circle, Range share) {
    for (int64_t i = 0; i < plan_.Segments(share); ++i) {
      ForOthers(circle, [&](int other) { plan_.Send(circle.at(other), plan_.Segment(share, i), Space::kOutput); });
    }
  }

  PlanBuilder& plan_;
  const Levels levels_;
};

}  // namespace

void AppendHierarchical(PlanBuilder& plan, int rank, const std::vector<Location>& locations, int64_t count) {
  Appender(plan, LevelsOf(rank, locations)).Append(0, {0, count}, Space::kInput);
}

}  // namespace cohort::collective
