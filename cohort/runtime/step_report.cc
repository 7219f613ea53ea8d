#include "cohort/runtime/step_report.h"

#include <algorithm>

#include "cohort/core/process/stacks.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// The most threads whose stacks an error has, and the most frames of each.
constexpr size_t kMostStacks = 4;
constexpr size_t kMostFramesShown = 24;

bool Works(const StepReport& report) {
  return report.answered.ok() && std::ranges::any_of(report.step.operations, [](const auto& o) { return Works(o); });
}

std::string DescribeOperations(const std::vector<RunningOperation>& operations) {
  std::vector<std::string> texts;
  for (const RunningOperation& operation : operations) texts.push_back(Describe(operation));
  return StrJoin(texts, "; ");
}

std::string DescribeOne(const StepReport& report) {
  if (!report.answered.ok()) return StrCat(report.task, " does not answer: ", report.answered.message());
  std::string doing;
  if (!report.known && !report.others.empty()) {
    doing = DescribeOperations(report.others);
  } else if (!report.known && !report.stacks.empty()) {
    doing = "runs no step";
  } else if (!report.known) {
    doing = "does nothing for the step: it has not begun, or its results are on their way";
  } else if (!report.step.operations.empty()) {
    doing = DescribeOperations(report.step.operations);
  } else if (!report.others.empty()) {
    doing = StrCat("waits for a thread, and for another step ", DescribeOperations(report.others));
  } else {
    doing = "waits for a thread";
  }
  std::string text = StrCat(report.task, " ", doing);
  if (!report.hang.empty()) text += StrCat(", and hangs: ", report.hang);
  if (!report.stacks.empty()) text += StrCat("; its stack:\n", report.stacks);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

bool Works(const RunningOperation& operation) {
  return operation.thread != 0 || operation.wait == WaitKind::kWork || operation.wait == WaitKind::kGate;
}

bool WaitsForOthers(const std::vector<StepReport>& reports) {
  bool others = false;
  for (const StepReport& report : reports) {
    if (Works(report)) return false;
    for (const RunningOperation& operation : report.step.operations) {
      others = others || operation.wait == WaitKind::kOtherSteps || operation.wait == WaitKind::kCollective;
    }
  }
  return others;
}

uint64_t StampOf(const std::vector<StepReport>& reports) {
  uint64_t stamp = reports.size();
  for (const StepReport& report : reports) {
    stamp = stamp * 0x9e3779b97f4a7c15ULL + (report.answered.ok() ? report.step.stamp : ~uint64_t{0});
  }
  return stamp;
}

std::string Describe(const RunningOperation& operation) {
  const std::string node = StrCat("node '", operation.node, "' (", operation.op, ") on ", operation.device);
  if (operation.thread != 0) return StrCat("runs ", node);
  std::string what = operation.what;
  if (what.empty() && operation.wait == WaitKind::kOtherSteps) what = "what another step does";
  if (what.empty() && operation.wait == WaitKind::kCall) what = "a function that it calls";
  if (what.empty() && operation.wait == WaitKind::kCollective) what = "the members of its group";
  if (what.empty()) return StrCat("works on ", node);
  if (!operation.peer.empty()) what += StrCat(" of ", operation.peer);
  return operation.wait == WaitKind::kValue ? StrCat("waits for ", what) : StrCat("waits for ", what, " in ", node);
}

std::string Describe(const std::vector<StepReport>& reports) {
  const auto rank = [](const StepReport* report) { return Works(*report) ? 0 : !report->answered.ok() ? 1 : 2; };
  std::vector<const StepReport*> sorted;
  for (const StepReport& report : reports) sorted.push_back(&report);
  std::ranges::stable_sort(sorted, {}, rank);
  std::vector<std::string> texts;
  for (const StepReport* report : sorted) texts.push_back(DescribeOne(*report));
  return StrJoin(texts, "\n");
}

StepReport ReportOn(uint64_t session, int64_t step, std::string task, std::vector<RunningStep> running,
                    bool with_stacks) {
  StepReport report;
  report.task = std::move(task);
  const bool about_task = session == 0;
  std::vector<RunningOperation> others;
  for (RunningStep& one : running) {
    if (!about_task && one.session == session && one.step == step) {
      report.known = true;
      report.step = std::move(one);
      continue;
    }
    for (RunningOperation& operation : one.operations) {
      if (about_task || operation.thread != 0) others.push_back(std::move(operation));
    }
  }
  const bool waits_for_thread = report.known && report.step.operations.empty();
  if (waits_for_thread || about_task) report.others = std::move(others);
  // The stack of a task that waits for another task's value says nothing.
  if (with_stacks && (about_task || waits_for_thread || Works(report))) {
    report.stacks = StacksFor(report.known && !waits_for_thread ? report.step.operations : report.others);
  }
  return report;
}

std::string StacksFor(const std::vector<RunningOperation>& operations) {
  std::vector<ThreadStack> stacks = ThreadStacks();
  const auto runs = [&](const ThreadStack& stack) {
    return std::ranges::any_of(operations, [&](const auto& o) { return o.thread == stack.thread; });
  };
  const bool any = std::ranges::any_of(stacks, runs);
  std::erase_if(stacks, [&](const ThreadStack& stack) {
    return any ? !runs(stack) : stack.idle || !stack.why_not.empty() || stack.thread == ThisThread();
  });
  const size_t more = stacks.size() > kMostStacks ? stacks.size() - kMostStacks : 0;
  stacks.resize(stacks.size() - more);
  for (ThreadStack& stack : stacks) {
    if (stack.frames.size() <= kMostFramesShown) continue;
    stack.frames.resize(kMostFramesShown);
    stack.frames.emplace_back("...");
  }
  std::string text = DescribeStacks(stacks);
  if (more > 0) text += StrCat("  and ", more, " more threads\n");
  return text;
}

}  // namespace cohort
