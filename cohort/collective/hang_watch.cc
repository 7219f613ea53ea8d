#include "cohort/collective/hang_watch.h"

#include <algorithm>
#include <utility>

#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/runtime/program_activity.h"
#include "cohort/runtime/step_report.h"

namespace cohort::collective {
namespace {

// The most members that one look asks. The next look comes soon.
constexpr size_t kMostAsked = 8;

double Seconds(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void HangWatch::SetNode(Node node, bool held_by_program) {
  MutexLock lock(mu_);
  node_ = std::move(node);
  held_by_program_ = held_by_program;
}

void HangWatch::OnFailed() {
  const uint64_t stamp = ProgramActivity::Global().Stamp();
  MutexLock lock(mu_);
  failed_ = true;
  stamp_ = stamp;
  quiet_since_ = Clock::now();
}

bool HangWatch::OnTold() {
  std::unique_ptr<HungThread> hung;  // destroyed without the lock
  MutexLock lock(mu_);
  hung = std::move(hung_);
  return !std::exchange(told_, true);
}

bool HangWatch::told() const {
  MutexLock lock(mu_);
  return told_;
}

Status HangWatch::FindHungMember() {
  if (limit_.count() == 0 || Clock::now() - start_ < limit_) return {};
  Node node;
  {
    MutexLock lock(mu_);
    if (failed_ || node_.describe_hang == nullptr) return {};
    node = node_;
  }
  std::vector<std::string> missing = membership_.MissingTasks();
  missing.resize(std::min(missing.size(), kMostAsked));
  for (const std::string& task : missing) {
    if (!membership_.status().ok()) return {};
    if (!node.runs(task)) continue;
    const std::string answer = node.describe_hang(task);
    const std::vector<std::string> still = membership_.MissingTasks();
    if (answer.empty() || std::ranges::find(still, task) == still.end()) continue;
    return Status(Code::kDeadlineExceeded,
                  StrCat("[collective] ", membership_.Describe(), " cannot be formed: ",
                         membership_.members().DescribeProcess(membership_.members().FindProcess(task)),
                         " has not joined, and its process hangs. The limit without progress is ", Seconds(limit_),
                         " s (GroupOptions::progress_limit, COHORT_PROGRESS_LIMIT). End that process.\n", answer));
  }
  return {};
}

bool HangWatch::IsQuiet(const Node& node) {
  const ProgramActivity::Report report = ProgramActivity::Global().Collect();
  const bool done = report.training_done || node.training_done();
  const auto now = Clock::now();
  std::unique_ptr<HungThread> hung;  // destroyed without the lock
  MutexLock lock(mu_);
  const bool judged = !report.in_call && !done && (held_by_program_ || report.sessions > 0);
  if (report.stamp != stamp_) came_back_ = true;
  if (came_back_ || !judged) {
    quiet_since_ = now;
    hung = std::move(hung_);
  }
  return hung_ == nullptr && now - quiet_since_ >= limit_;
}

bool HangWatch::AnotherRuns(const Node& node) const {
  const MemberList& members = membership_.members();
  return std::ranges::any_of(members.tasks(),
                             [&](const std::string& task) { return task != members.own_task() && node.runs(task); });
}

void HangWatch::LookAtProgram() {
  if (limit_.count() == 0) return;
  Node node;
  {
    MutexLock lock(mu_);
    if (!failed_ || told_ || came_back_ || node_.runs == nullptr) return;
    node = node_;
  }
  if (!IsQuiet(node) || !AnotherRuns(node)) return;
  const std::string stacks = StacksFor({});
  const std::string what = StrCat("the program has called no session and no collective for more than ", Seconds(limit_),
                                  " s, since ", membership_.Describe(), " has failed");
  {
    MutexLock lock(mu_);
    if (told_) return;
    hung_ = std::make_unique<HungThread>(what);
  }
  LogError(
      "collective", "a thread of this process hangs: ", what,
      " (GroupOptions::progress_limit, COHORT_PROGRESS_LIMIT). Other members run and wait for it. From now on this "
      "process does not answer its launcher. The failure was: ",
      membership_.status().ToString(), "\nThe threads of this process:\n", stacks);
}

}  // namespace cohort::collective
