#include "cohort/cluster/status/late_task.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/steps/remote_task.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostTasks = 8;
constexpr std::chrono::seconds kForAll{10};
constexpr std::chrono::seconds kForOne{5};

StepReport AskTask(ClusterNode& node, const std::string& task, Clock::time_point deadline) {
  StepReport report;
  try {
    const DeviceName name = DeviceName::Parse(task);
    const std::string& address = node.cluster().task_address(name.job.value(), name.task.value());
    report = AskOverNewConnection(node, address, 0, 0, true, std::min(deadline, Clock::now() + kForOne));
  } catch (...) {
    report.answered = Status::FromCurrentException();
  }
  report.task = task;
  return report;
}

// Returns the task for which the task of the report waits, if it does nothing else.
std::string AwaitedTask(const StepReport& report, const std::set<std::string>& asked) {
  if (std::ranges::any_of(report.others, Works)) return "";
  for (const RunningOperation& operation : report.others) {
    if (!operation.peer.empty() && !asked.contains(operation.peer)) return operation.peer;
  }
  return "";
}

}  // namespace

std::string DescribeLateTask(ClusterNode& node, const std::string& task) {
  const auto deadline = Clock::now() + kForAll;
  std::set<std::string> asked{node.task().ToString()};
  std::vector<std::string> texts;
  for (std::string next = task; !next.empty() && texts.size() < kMostTasks;) {
    asked.insert(next);
    const StepReport report = AskTask(node, next, deadline);
    texts.push_back(Describe({report}));
    next = AwaitedTask(report, asked);
  }
  return StrJoin(texts, "\n");
}

std::string DescribeHang(ClusterNode& node, const std::string& task) {
  const StepReport report = AskTask(node, task, Clock::now() + kForOne);
  return !report.answered.ok() || report.hang.empty() || report.launcher_ends_it ? "" : Describe({report});
}

}  // namespace cohort
