// Schedules: the collectives that a member runs with its group, and how the schedules of two members differ.
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
  CallSignature signature;  // its algorithm is always kAuto
  friend bool operator==(const ScheduleEntry&, const ScheduleEntry&) = default;
};

// All collectives that one step of a graph runs with one group. Immutable.
struct StepSchedule final : CollectiveSchedule {
  std::vector<ScheduleEntry> entries;
  uint64_t fingerprint = 0;  // of the entries without their names; never 0
};

// Returns the collectives of `graph` with the group, sorted by instance, then by graph order. A node with a
// `_generation` attribute is included only if the attribute equals `generation`. Unknown dimensions stay unknown.
std::shared_ptr<const StepSchedule> ScheduleOf(const Graph& graph, int64_t group_key, int64_t generation);
// Returns the reduction that a node asks for. Requires: it is a CollectiveReduce or CollectiveReduceScatter.
ReduceOp ReduceOpOf(const Node& node);

// The first entries at which two schedules differ.
struct ScheduleDifference {
  size_t number = 0;  // position in both schedules, from 0
  // "'w' (instance 3), all-reduce SUM of float32[4] by AUTO", or "nothing" if the schedule has no such position.
  std::string ours, theirs;
};
// How FindDifference compares two entries. kCompare: all their fields must be equal. kIgnore: names do not count, and
// shapes need only be compatible. (Members in one graph have different node names, and a graph may not know a
// dimension.)
enum class NameCheck : uint8_t { kCompare, kIgnore };
// Returns the first difference, or nullopt if there is none.
std::optional<ScheduleDifference> FindDifference(const std::vector<ScheduleEntry>& ours,
                                                 const std::vector<ScheduleEntry>& theirs, NameCheck names);

}  // namespace cohort::collective
