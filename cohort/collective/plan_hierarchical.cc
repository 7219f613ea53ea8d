// All-reduce inside processes first, then between them. With one process only it is the direct algorithm.
#include <limits>
#include <map>

#include "cohort/collective/plan_builder.h"

namespace cohort::collective {
namespace {

struct Neighbourhood {
  std::vector<int> ranks;               // of this member's process
  int index = 0;                        // of this member among them
  int lanes = 0;                        // how many members of each process own a part
  std::vector<std::vector<int>> rings;  // of each lane: its owner in every process
  int process = 0;                      // number of this member's process in a ring
};

Neighbourhood Look(int rank, const std::vector<int>& process_of) {
  std::map<int, std::vector<int>> processes;
  for (size_t i = 0; i < process_of.size(); ++i) processes[process_of[i]].push_back(static_cast<int>(i));
  Neighbourhood result;
  result.lanes = std::numeric_limits<int>::max();
  for (const auto& [process, ranks] : processes) result.lanes = std::min(result.lanes, static_cast<int>(ranks.size()));
  result.rings.resize(static_cast<size_t>(result.lanes));
  int number = 0;
  for (const auto& [process, ranks] : processes) {
    for (size_t lane = 0; lane < result.rings.size(); ++lane) result.rings[lane].push_back(ranks[lane]);
    if (process == process_of[static_cast<size_t>(rank)]) {
      result.ranks = ranks;
      result.process = number;
    }
    ++number;
  }
  result.index = static_cast<int>(std::find(result.ranks.begin(), result.ranks.end(), rank) - result.ranks.begin());
  return result;
}

}  // namespace

void AppendHierarchical(PlanBuilder& plan, int rank, const std::vector<int>& process_of, int64_t count) {
  const Neighbourhood here = Look(rank, process_of);
  const int local = static_cast<int>(here.ranks.size());
  const auto peer = [&](int offset) { return here.ranks[static_cast<size_t>((here.index + offset) % local)]; };
  const auto lane_of = [&](int index) { return PartOf(count, here.lanes, index); };
  const bool alone = process_of.empty() || here.rings.front().size() == 1;
  // The neighbours who own a lane get what this member adds to it.
  for (int offset = 1; offset < local; ++offset) {
    const int owner = (here.index + offset) % local;
    if (owner >= here.lanes) continue;
    const Range lane = lane_of(owner);
    for (int64_t i = 0; i < plan.Segments(lane); ++i) plan.Send(peer(offset), plan.Segment(lane, i), Space::kInput);
  }
  if (here.index < here.lanes) {
    const Range lane = lane_of(here.index);
    for (int64_t i = 0; i < plan.Segments(lane) && local > 1; ++i) {
      const Range segment = plan.Segment(lane, i);
      Space from = Space::kInput;
      for (int offset = 1; offset < local; ++offset) {
        const bool final = alone && offset == local - 1;
        const Space to = final ? Space::kOutput : plan.partials();
        plan.Reduce(peer(offset), segment, from, to, final);
        from = to;
      }
      for (int offset = 1; alone && offset < local; ++offset) plan.Send(peer(offset), segment, Space::kOutput);
    }
    if (!alone) {
      AppendRingAllReduce(plan, here.rings[static_cast<size_t>(here.index)], here.process, lane,
                          local > 1 ? plan.partials() : Space::kInput);
      for (int64_t i = 0; i < plan.Segments(lane); ++i) {
        for (int offset = 1; offset < local; ++offset) plan.Send(peer(offset), plan.Segment(lane, i), Space::kOutput);
      }
    }
  }
  for (int offset = 1; offset < local; ++offset) {
    const int owner = (here.index + offset) % local;
    if (owner >= here.lanes) continue;
    const Range lane = lane_of(owner);
    for (int64_t i = 0; i < plan.Segments(lane); ++i) plan.Receive(peer(offset), plan.Segment(lane, i));
  }
}

}  // namespace cohort::collective
