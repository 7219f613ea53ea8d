// All-reduce inside processes first, then between the processes of a host, then between hosts. If all members are in
// one process, this is the direct algorithm.
//
// A "circle" is a set of members that reduce together. There are three levels of circles: the members of a process, the
// processes of a host, and the hosts; a level whose circles all have one member vanishes. On the two inner levels only
// the first few members of a circle own a share of the sum: as many as the smallest process has ranks, and as the
// smallest host has processes. So each owner has its counterpart in every other circle. Each host then sends
// 2 (h - 1) / h of the bytes to other hosts, h being the number of hosts.
#include <map>

#include "cohort/collective/plan/all_reduce.h"
#include "cohort/collective/plan/plan_builder.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

using Ranks = std::vector<int>;

struct Circle {
  Ranks ranks;
  int index = 0;  // of this member among them
  int owners = 0;

  int size() const { return static_cast<int>(ranks.size()); }
  int at(int number) const { return ranks[static_cast<size_t>(number)]; }
};

// The circles in which one member takes part.
struct Levels {
  std::vector<Circle> circles;  // the innermost one first
  Circle ring;                  // the outermost level, without shares; it has one member if one circle holds all
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
  if (lane >= inside.owners) return levels;  // this member owns no share
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

  // Appends the all-reduce of `range` by the levels from `level` on. `own` is the buffer with this member's
  // contribution.
  void Append(size_t level, Range range, PlanBuffer own) {
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
    // Each member of the circle that owns a share gets this member's contribution to it.
    ForOtherOwners(circle, [&](int owner) { SendAll(circle.at(owner), share(owner), own); });
    if (circle.index < circle.owners) {
      const bool outermost = level + 1 == levels_.circles.size() && levels_.ring.size() == 1;
      Collect(circle, share(circle.index), own, outermost);
      if (!outermost) {
        Append(level + 1, share(circle.index), plan_.partial_sum_buffer());
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
  // Begins with the next member, so that not all members send to the same one at once.
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
  void SendAll(int peer, Range range, PlanBuffer from) {
    for (int64_t i = 0; i < plan_.Segments(range); ++i) plan_.Send(peer, plan_.Segment(range, i), from);
  }
  // Reduces this member's share. If the share is then complete, sends every segment as soon as it is reduced.
  void Collect(const Circle& circle, Range share, PlanBuffer own, bool outermost) {
    for (int64_t i = 0; i < plan_.Segments(share); ++i) {
      const Range segment = plan_.Segment(share, i);
      PlanBuffer from = own;
      int left = circle.size() - 1;
      ForOthers(circle, [&](int other) {
        const bool final = outermost && --left == 0;
        const PlanBuffer to = final ? PlanBuffer::kOutput : plan_.partial_sum_buffer();
        plan_.Reduce(circle.at(other), segment, from, to, final);
        from = to;
      });
      if (outermost) ForOthers(circle, [&](int other) { plan_.Send(circle.at(other), segment, PlanBuffer::kOutput); });
    }
  }
  void Spread(const Circle& circle, Range share) {
    for (int64_t i = 0; i < plan_.Segments(share); ++i) {
      ForOthers(circle, [&](int other) { plan_.Send(circle.at(other), plan_.Segment(share, i), PlanBuffer::kOutput); });
    }
  }

  PlanBuilder& plan_;
  const Levels levels_;
};

// Returns whether there are several hosts with as many processes each, two or more. With h hosts of p processes, each
// host then sends 2 (h - 1) / h of the bytes by the hierarchy, 2 (h p - 1) / (h p) by a ring, and p times as many as
// the hierarchy by halving-doubling and the direct algorithm. If hosts have unequal numbers of processes, the larger
// hosts first move everything to the few processes that have a counterpart elsewhere, which may cost more than it
// saves.
bool AreEvenHosts(const std::set<Location>& processes) {
  std::map<int, int> of_host;
  for (const Location& process : processes) ++of_host[process.host];
  const int first = of_host.begin()->second;
  return of_host.size() > 1 && first > 1 &&
         std::all_of(of_host.begin(), of_host.end(), [&](const auto& host) { return host.second == first; });
}

}  // namespace

void AppendHierarchical(PlanBuilder& plan, const AllReduceTask& task) {
  if (task.locations.size() != static_cast<size_t>(task.world)) {
    throw InvalidArgumentError(
        StrCat("[collective] expected the location of each of ", task.world, " ranks; got ", task.locations.size()));
  }
  Appender(plan, LevelsOf(task.rank, task.locations)).Append(0, {0, task.count}, PlanBuffer::kInput);
}

// bfloat16 too, though unfinished sums travel as float32 half of the way: 3 / 2 of the bytes in AreEvenHosts.
bool SuitsHierarchical(const AllReduceFacts& facts) {
  return !facts.one_rank_each() || (facts.world > 2 && AreEvenHosts(facts.processes));
}

void AppendDirect(PlanBuilder& plan, const AllReduceTask& task) {
  const std::vector<Location> one_process(static_cast<size_t>(task.world));
  Appender(plan, LevelsOf(task.rank, one_process)).Append(0, {0, task.count}, PlanBuffer::kInput);
}

// Its unfinished sums do not travel. In bfloat16 they would take twice the bytes of the elements.
bool SuitsDirect(const AllReduceFacts& facts) { return facts.world > 2 && facts.dtype == DType::kBfloat16; }

}  // namespace cohort::collective
