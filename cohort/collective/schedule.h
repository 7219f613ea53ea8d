// Schedules: which collectives a member runs with its group, and how two members' schedules differ. Internal to
// collective/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/collective/call.h"
#include "cohort/graph/graph.h"

namespace cohort::collective {

// One collective of a group's schedule.
struct ScheduleEntry {
  int64_t instance = 0;
  std::string name;
  Signature signature;  // algorithm kAuto
  friend bool operator==(const ScheduleEntry&, const ScheduleEntry&) = default;
};

// The collectives of one graph with one group: what a step of that graph runs. Constant.
struct Schedule final : CollectiveSchedule {
  std::vector<ScheduleEntry> entries;
  uint64_t fingerprint = 0;  // of the entries but for their names; never 0
};

// By instance, then as the nodes stand in the graph. Of nodes with attributes "_generation" those of `generation`.
// Shapes as far as they are known.
std::shared_ptr<const Schedule> ScheduleOf(const Graph& graph, int64_t group_key, int64_t generation);
// What the attributes of a CollectiveReduce or CollectiveReduceScatter ask for.
ReduceOp ReduceOpOf(const Node& node);

// The first difference.
struct ScheduleDifference {
  size_t number = 0;         // in both
  std::string ours, theirs;  // "'w' (instance 3), all-reduce SUM of float32[4] by AUTO", or "nothing"
};
enum class Names : uint8_t { kCount, kDoNotCount };
// kDoNotCount: of members that may stand in one graph, where names are made different; shapes that are unknown then
// agree with all.
std::optional<ScheduleDifference> FindDifference(const std::vector<ScheduleEntry>& ours,
                                                 const std::vector<ScheduleEntry>& theirs, Names names);

}  // namespace cohort::collective
