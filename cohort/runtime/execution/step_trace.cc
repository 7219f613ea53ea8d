#include "cohort/runtime/execution/step_trace.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

int64_t Nanos(std::chrono::nanoseconds time) { return time.count(); }

// Returns "CALLER/" for each call of a function that the run is inside of, the outermost first.
std::string CallPrefix(const CallFrame* caller) {
  std::string prefix;
  for (; caller != nullptr; caller = caller->outer) prefix = StrCat(caller->caller.name(), "/", prefix);
  return prefix;
}

std::string TransferOf(const Node& node) {
  if (!node.has_attr("send_device")) return "";
  return StrCat(node.attr<std::string>("tensor_name"), ", ", node.attr<std::string>("send_device"), " -> ",
                node.attr<std::string>("recv_device"));
}

}  // namespace

void StepTrace::Add(DeviceStepStats stats) {
  MutexLock lock(mu_);
  DeviceStepStats& all = devices_[stats.device];
  if (all.device.empty()) all.device = stats.device;
  const auto room = static_cast<size_t>(DeviceStepStats::kMaxNodeStats) - all.node_stats.size();
  const size_t taken = std::min(room, stats.node_stats.size());
  all.num_dropped += stats.num_dropped + static_cast<int64_t>(stats.node_stats.size() - taken);
  std::move(stats.node_stats.begin(), stats.node_stats.begin() + static_cast<std::ptrdiff_t>(taken),
            std::back_inserter(all.node_stats));
}

void StepTrace::Add(StepStats stats) {
  for (DeviceStepStats& device : stats.dev_stats) Add(std::move(device));
}

uint32_t StepTrace::NumberOf(std::thread::id thread) {
  MutexLock lock(mu_);
  return threads_.try_emplace(thread, static_cast<uint32_t>(threads_.size())).first->second;
}

StepStats StepTrace::Take() {
  StepStats stats;
  MutexLock lock(mu_);
  for (auto& [device, of_device] : devices_) {
    std::stable_sort(
        of_device.node_stats.begin(), of_device.node_stats.end(),
        [](const NodeExecStats& a, const NodeExecStats& b) { return a.all_start_nanos < b.all_start_nanos; });
    stats.dev_stats.push_back(std::move(of_device));
  }
  devices_.clear();
  return stats;
}

void RunTrace::Start(const PlanNode& node) { EntryOf(node).start = Clock::now(); }

void RunTrace::End(const PlanNode& node, std::span<const Tensor> outputs) {
  Entry& entry = EntryOf(node);
  entry.end = Clock::now();
  for (const Tensor& output : outputs) entry.bytes += static_cast<int64_t>(output.bytes());
  entry.thread = std::this_thread::get_id();
}

NodeExecStats RunTrace::StatsOf(const PlanNode& node, const Entry& entry) const {
  NodeExecStats stats;
  stats.node_name = node.node->name();
  stats.op = node.node->op_name();
  stats.transfer = TransferOf(*node.node);
  stats.all_end_rel_nanos = Nanos(entry.end - entry.start);
  stats.output_bytes = entry.bytes;
  return stats;
}

void RunTrace::GiveTo(StepTrace& trace, const CallFrame* caller) const {
  // Times are measured by the clock that never jumps, and told by the one that other tasks have too.
  const Clock::time_point now = Clock::now();
  const int64_t epoch = Nanos(std::chrono::system_clock::now().time_since_epoch());
  const std::string prefix = CallPrefix(caller);
  std::vector<int32_t> producers(plan_.initial_uses.size(), -1);  // by slot
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    const PlanNode& node = plan_.nodes[i];
    std::fill_n(producers.begin() + node.output_begin, node.num_outputs, static_cast<int32_t>(i));
  }
  DeviceStepStats device;
  device.device = plan_.device.name();
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.end == Clock::time_point()) continue;
    NodeExecStats stats = StatsOf(plan_.nodes[i], entry);
    stats.node_name = prefix + stats.node_name;
    stats.all_start_nanos = epoch - Nanos(now - entry.start);
    stats.thread_id = trace.NumberOf(entry.thread);
    for (const int32_t slot : plan_.InputSlots(plan_.nodes[i])) {
      const int32_t producer = producers[static_cast<size_t>(slot)];
      if (producer < 0) continue;  // a constant
      stats.inputs.push_back(prefix + plan_.nodes[static_cast<size_t>(producer)].node->name());
    }
    device.node_stats.push_back(std::move(stats));
  }
  trace.Add(std::move(device));
}

}  // namespace cohort
