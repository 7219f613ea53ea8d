#include "cohort/cluster/status/task_state.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include "cohort/cluster/cluster_node.h"
#include "cohort/core/buffer.h"
#include "cohort/core/process/stacks.h"
#include "cohort/core/str_cat.h"
#include "cohort/runtime/step_report.h"

namespace cohort {
namespace {

// Returns the bytes of a line like "VmRSS:  123 kB" of /proc/self/status, or 0.
int64_t BytesOf(const std::string& line) {
  const size_t digit = line.find_first_of("0123456789");
  return digit == std::string::npos ? 0 : 1024 * std::stoll(line.substr(digit));
}

MemoryState MemoryOfProcess() {
  MemoryState memory;
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmRSS:")) memory.resident_bytes = BytesOf(line);
    if (line.starts_with("VmHWM:")) memory.peak_resident_bytes = BytesOf(line);
  }
  memory.allocated_bytes = HostAllocatorStats().bytes_in_use;
  return memory;
}

std::vector<SessionState> SessionsOf(ClusterNode& node) {
  std::map<uint64_t, SessionState> sessions;
  for (const auto& [session, here] : node.local_task()->Sessions()) {
    sessions[session] = {session, here.client, here.executables, false, std::chrono::milliseconds(-1)};
  }
  for (const LeaseTable::Entry& lease : node.steps().Leases()) {
    SessionState& state = sessions[lease.session];
    state.session = lease.session;
    state.client = lease.client.task;
    state.ended = lease.ended;
    if (lease.expires_in) state.expires_in = *lease.expires_in;
  }
  std::vector<SessionState> all;
  for (auto& [session, state] : sessions) all.push_back(std::move(state));
  return all;
}

std::vector<RunningStep> StepsOf(ClusterNode& node, const std::vector<CollectiveWait>& collectives) {
  if (node.local_task() == nullptr) return {};
  std::vector<RunningStep> steps = node.local_task()->RunningSteps();
  for (RunningStep& step : steps) {
    for (RunningOperation& operation : step.operations) {
      if (!operation.waits() || operation.wait != WaitKind::kCollective) continue;
      const auto found = std::ranges::find(collectives, operation.node, &CollectiveWait::name);
      if (found == collectives.end()) continue;
      operation.what = StrCat(found->what, ", which ", found->wait);
      if (!found->peers.empty()) operation.peer = found->peers.front();
    }
  }
  return steps;
}

std::string Seconds(std::chrono::steady_clock::duration time) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s", std::chrono::duration<double>(time).count());
  return text;
}

std::string MebiBytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f MiB", static_cast<double>(bytes) / (1024 * 1024));
  return text;
}

std::string Hex(uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%016lx", static_cast<unsigned long>(number));
  return text;
}

std::string DescribeStep(const RunningStep& step) {
  const auto now = RunningStep::Clock::now();
  std::string text = StrCat("  step ", step.step, " of session ", Hex(step.session), " of ", step.client, ": seen for ",
                            Seconds(now - step.since), ", without progress for ", Seconds(now - step.progress), "\n");
  for (const RunningOperation& operation : step.operations) text += StrCat("    ", Describe(operation), "\n");
  if (step.operations.empty()) text += "    waits for a thread\n";
  return text;
}

std::string DescribeSession(const SessionState& session) {
  std::string text =
      StrCat("  session ", Hex(session.session), " of ", session.client, ": ", session.graphs, " graphs");
  if (session.ended) text += ", has ended and is being freed";
  if (session.expires_in.count() >= 0) {
    text += StrCat(", its client is not connected and has ", Seconds(session.expires_in), " left");
  }
  return text + "\n";
}

}  // namespace

std::vector<RunningStep> CollectRunningSteps(ClusterNode& node) { return StepsOf(node, node.Waits()); }

RunningStep CollectivesWithoutStep(ClusterNode& node, const std::vector<RunningStep>& steps) {
  RunningStep alone;
  for (const CollectiveWait& wait : node.Waits()) {
    const bool of_step = std::ranges::any_of(steps, [&](const RunningStep& step) {
      return std::ranges::any_of(step.operations, [&](const auto& o) { return o.node == wait.name; });
    });
    if (of_step) continue;
    alone.operations.push_back({wait.name, "collective", node.task().ToString(), 0, WaitKind::kCollective,
                                StrCat(wait.what, ", which ", wait.wait),
                                wait.peers.empty() ? "" : wait.peers.front()});
  }
  return alone;
}

TaskState CollectTaskState(ClusterNode& node) {
  TaskState state;
  state.task = node.task().ToString();
  state.incarnation = node.identity().incarnation;
  state.process = getpid();
  state.collectives = node.Waits();
  state.steps = StepsOf(node, state.collectives);
  if (node.local_task() != nullptr) state.sessions = SessionsOf(node);
  state.memory = MemoryOfProcess();
  return state;
}

std::string DescribeWithoutStacks(const TaskState& state) {
  std::string text =
      StrCat("state of ", state.task, " (process ", state.process, ", incarnation ", Hex(state.incarnation), ")\n");
  text += StrCat("memory: ", MebiBytes(state.memory.resident_bytes), " resident, ",
                 MebiBytes(state.memory.peak_resident_bytes), " at most so far, ",
                 MebiBytes(state.memory.allocated_bytes), " in tensors\n");
  text += StrCat("steps under way: ", state.steps.size(), "\n");
  for (const RunningStep& step : state.steps) text += DescribeStep(step);
  text += StrCat("collectives under way: ", state.collectives.size(), "\n");
  for (const CollectiveWait& wait : state.collectives) text += StrCat("  ", wait.what, ": it ", wait.wait, "\n");
  text += StrCat("sessions: ", state.sessions.size(), "\n");
  for (const SessionState& session : state.sessions) text += DescribeSession(session);
  return text;
}

std::string DescribeTask(ClusterNode& node) {
  return StrCat(DescribeWithoutStacks(CollectTaskState(node)), "threads:\n", DescribeStacks(ThreadStacks()));
}

}  // namespace cohort
