#include "cohort/collective/schedule.h"

#include <algorithm>
#include <tuple>

#include "cohort/core/fnv.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

std::optional<CallKind> KindOf(const std::string& op) {
  if (op.rfind("Collective", 0) != 0) return std::nullopt;
  if (op == "CollectiveReduce") return CallKind::kAllReduce;
  if (op == "CollectiveReduceScatter") return CallKind::kReduceScatter;
  if (op == "CollectiveGather") return CallKind::kAllGather;
  if (op == "CollectiveBcastSend" || op == "CollectiveBcastRecv") return CallKind::kBroadcast;
  if (op == "CollectiveBarrier") return CallKind::kBarrier;
  return std::nullopt;
}

ScheduleEntry EntryOf(const Node& node, CallKind kind) {
  ScheduleEntry entry = {node.attr<int64_t>("instance_key"), node.name(), {}};
  CallSignature& signature = entry.signature;
  signature.kind = kind;
  signature.algorithm = Algorithm::kAuto;
  if (kind == CallKind::kAllReduce || kind == CallKind::kReduceScatter) signature.op = ReduceOpOf(node);
  if (kind == CallKind::kBarrier) return entry;
  signature.dtype = node.output_dtype(0);
  signature.shape = node.num_inputs() > 0 ? node.input(0).shape() : node.attr<Shape>("shape");
  return entry;
}

uint64_t FingerprintOf(const std::vector<ScheduleEntry>& entries) {
  uint64_t hash = kFnvBasis;
  for (const ScheduleEntry& entry : entries) {
    hash = Fnv1a(StrCat(entry.instance, " ", entry.signature.ToString(), "\n"), hash);
  }
  return hash == 0 ? kFnvBasis : hash;
}

std::string Describe(const std::vector<ScheduleEntry>& entries, size_t number) {
  if (number >= entries.size()) return "nothing";
  const ScheduleEntry& entry = entries[number];
  return StrCat("'", entry.name, "' (instance ", entry.instance, "), ", entry.signature.ToString());
}

bool Agree(const ScheduleEntry& ours, const ScheduleEntry& theirs, NameCheck names) {
  if (names == NameCheck::kCompare) return ours == theirs;
  const auto certain = [](const ScheduleEntry& entry) {
    const CallSignature& what = entry.signature;
    return std::make_tuple(entry.instance, what.kind, what.op, what.root, what.dtype);
  };
  return certain(ours) == certain(theirs) && ours.signature.shape.IsCompatibleWith(theirs.signature.shape);
}

}  // namespace

ReduceOp ReduceOpOf(const Node& node) {
  const std::string& merge = node.attr<std::string>("merge_op");
  if (merge == "Mul") return ReduceOp::kProduct;
  if (merge == "Min") return ReduceOp::kMin;
  if (merge == "Max") return ReduceOp::kMax;
  return node.attr<std::string>("final_op") == "Div" ? ReduceOp::kMean : ReduceOp::kSum;
}

std::shared_ptr<const StepSchedule> ScheduleOf(const Graph& graph, int64_t group_key, int64_t generation) {
  auto schedule = std::make_shared<StepSchedule>();
  for (const Node* node : graph.nodes()) {
    const auto kind = KindOf(node->op_name());
    if (!kind || node->attr<int64_t>("group_key") != group_key) continue;
    if (node->has_attr("_generation") && node->attr<int64_t>("_generation") != generation) continue;
    schedule->entries.push_back(EntryOf(*node, *kind));
  }
  std::stable_sort(schedule->entries.begin(), schedule->entries.end(),
                   [](const ScheduleEntry& a, const ScheduleEntry& b) { return a.instance < b.instance; });
  schedule->fingerprint = FingerprintOf(schedule->entries);
  return schedule;
}

std::optional<ScheduleDifference> FindDifference(const std::vector<ScheduleEntry>& ours,
                                                 const std::vector<ScheduleEntry>& theirs, NameCheck names) {
  for (size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    if (i < ours.size() && i < theirs.size() && Agree(ours[i], theirs[i], names)) continue;
    return ScheduleDifference{i, Describe(ours, i), Describe(theirs, i)};
  }
  return std::nullopt;
}

}  // namespace cohort::collective
