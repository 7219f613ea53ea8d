#include "cohort/collective/watchdog.h"

#include <algorithm>
#include <set>

#include "cohort/core/deadline.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort::collective {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

void LateCallReport::Update(const std::string& group, std::chrono::milliseconds interval,
                            const std::vector<std::shared_ptr<UnfinishedCollective>>& unfinished) {
  std::map<const UnfinishedCollective*, Seen> now;
  std::string first;
  std::set<std::string> due;  // all members of this process may wait in one collective
  for (const auto& call : unfinished) {
    const std::string wait = call->DescribeWait();
    if (wait.empty()) continue;
    Seen& seen = now[call.get()];
    const auto before = seen_.find(call.get());
    if (before != seen_.end() && before->second.call.lock() == call) seen = before->second;
    if (seen.call.lock() == nullptr) {
      seen.call = call;
      continue;
    }
    if (++seen.updates < seen.next_report) continue;
    seen.next_report *= 2;
    due.insert(call->Describe());
    if (!first.empty()) continue;
    first = StrCat(call->Describe(), " of ", group, " has been under way for at least ",
                   static_cast<double>((interval * seen.updates).count()) / 1000.0, " s: it ", wait);
  }
  seen_ = std::move(now);
  if (first.empty()) return;
  LogWarning("collective", first, due.size() == 1 ? "" : StrCat("; and ", due.size() - 1, " more"));
}

Watchdog::Watchdog(std::string group, const Limits& limits, Callbacks callbacks)
    : group_(std::move(group)), limits_(limits), callbacks_(std::move(callbacks)) {}

Watchdog::~Watchdog() = default;

void Watchdog::Start() {
  if (limits_.timeout.count() > 0 || limits_.late_interval.count() > 0) {
    thread_ = std::thread([this] { Loop(); });
  }
}

void Watchdog::Watch(const std::shared_ptr<UnfinishedCollective>& call, std::chrono::milliseconds longer) {
  if (limits_.timeout.count() == 0) return;
  {
    MutexLock lock(mu_);
    const Watched watched = {DeadlineAfter(limits_.timeout) + longer, call};
    const auto later = [](const Watched& a, const Watched& b) { return a.deadline < b.deadline; };
    watched_.insert(std::upper_bound(watched_.begin(), watched_.end(), watched, later), watched);
  }
  changed_.NotifyAll();
}

void Watchdog::Stop() {
  {
    MutexLock lock(mu_);
    stopped_ = true;
  }
  changed_.NotifyAll();
}

void Watchdog::Join() {
  if (thread_.joinable()) thread_.join();
}

bool Watchdog::AwaitNext(Clock::time_point next_report, std::shared_ptr<UnfinishedCollective>* overdue, bool* report) {
  MutexLock lock(mu_);
  for (;;) {
    if (stopped_) return false;
    while (!watched_.empty() && watched_.front().call.expired()) watched_.pop_front();
    const auto deadline = watched_.empty() ? Clock::time_point::max() : watched_.front().deadline;
    const auto now = Clock::now();
    *report = now >= next_report;
    if (now >= deadline) {
      *overdue = watched_.front().call.lock();
      watched_.pop_front();
      return true;
    }
    if (*report) return true;
    const auto until = std::min(next_report, deadline);
    // The wait ends with Stop.
    until == Clock::time_point::max() ? changed_.Wait(mu_) : static_cast<void>(changed_.WaitUntil(mu_, until));
  }
}

void Watchdog::Loop() {
  SetThreadName("cohort-watch");
  const auto interval = limits_.late_interval;
  LateCallReport late;
  auto next_report = interval.count() > 0 ? DeadlineAfter(interval) : Clock::time_point::max();
  for (;;) {
    std::shared_ptr<UnfinishedCollective> overdue;
    bool report = false;
    if (!AwaitNext(next_report, &overdue, &report)) return;
    if (overdue != nullptr) {
      const std::string wait = overdue->DescribeWait();
      if (!wait.empty()) callbacks_.on_timeout(*overdue, wait);
    }
    if (!report) continue;
    overdue.reset();
    late.Update(group_, interval, callbacks_.unfinished());
    next_report = DeadlineAfter(interval);
  }
}

}  // namespace cohort::collective
