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

constexpr std::chrono::milliseconds kShortestSearchInterval{10};

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

std::shared_ptr<UnfinishedCollective> StuckCallSearch::Find(
    std::chrono::milliseconds limit, const std::vector<std::shared_ptr<UnfinishedCollective>>& unfinished) {
  std::map<const UnfinishedCollective*, Seen> found;
  std::shared_ptr<UnfinishedCollective> stuck;
  const auto now = Clock::now();
  for (const auto& call : unfinished) {
    const std::optional<uint64_t> stamp = call->Stamp();
    if (!stamp || call->DescribeWait().empty()) continue;
    Seen& seen = found[call.get()];
    const auto before = seen_.find(call.get());
    const bool same = before != seen_.end() && before->second.call.lock() == call && before->second.stamp == *stamp;
    seen = same ? before->second : Seen{call, *stamp, now};
    if (stuck == nullptr && now - seen.since >= limit) stuck = call;
  }
  seen_ = std::move(found);
  return stuck;
}

Watchdog::Watchdog(std::string group, const Limits& limits, Callbacks callbacks)
    : group_(std::move(group)), limits_(limits), callbacks_(std::move(callbacks)) {}

Watchdog::~Watchdog() = default;

void Watchdog::Start() {
  if (limits_.timeout.count() > 0 || limits_.late_interval.count() > 0 || limits_.progress.count() > 0) {
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

bool Watchdog::AwaitNext(Clock::time_point next, std::shared_ptr<UnfinishedCollective>* overdue) {
  MutexLock lock(mu_);
  for (;;) {
    if (stopped_) return false;
    while (!watched_.empty() && watched_.front().call.expired()) watched_.pop_front();
    const auto deadline = watched_.empty() ? Clock::time_point::max() : watched_.front().deadline;
    const auto now = Clock::now();
    if (now >= deadline) {
      *overdue = watched_.front().call.lock();
      watched_.pop_front();
      return true;
    }
    if (now >= next) return true;
    const auto until = std::min(next, deadline);
    // The wait ends with Stop.
    until == Clock::time_point::max() ? changed_.Wait(mu_) : static_cast<void>(changed_.WaitUntil(mu_, until));
  }
}

void Watchdog::Loop() {
  SetThreadName("cohort-watch");
  const auto report_interval = limits_.late_interval;
  const auto search_interval = std::max(limits_.progress / 4, kShortestSearchInterval);
  LateCallReport late;
  StuckCallSearch search;
  auto next_report = report_interval.count() > 0 ? DeadlineAfter(report_interval) : Clock::time_point::max();
  auto next_search = limits_.progress.count() > 0 ? DeadlineAfter(search_interval) : Clock::time_point::max();
  for (;;) {
    std::shared_ptr<UnfinishedCollective> overdue;
    if (!AwaitNext(std::min(next_report, next_search), &overdue)) return;
    if (overdue != nullptr) {
      const std::string wait = overdue->DescribeWait();
      if (!wait.empty()) callbacks_.on_timeout(*overdue, wait);
      overdue.reset();
    }
    const auto now = Clock::now();
    if (now >= next_report) {
      late.Update(group_, report_interval, callbacks_.unfinished());
      next_report = DeadlineAfter(report_interval);
    }
    if (now >= next_search) {
      if (const auto stuck = search.Find(limits_.progress, callbacks_.unfinished())) callbacks_.on_stuck(*stuck);
      callbacks_.look_for_hangs();
      next_search = DeadlineAfter(search_interval);
    }
  }
}

}  // namespace cohort::collective
