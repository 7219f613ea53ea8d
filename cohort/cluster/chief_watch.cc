#include "cohort/cluster/chief_watch.h"

#include <algorithm>

#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// How often a task looks for a chief that it has never seen. A chief that uses the task connects by itself.
constexpr std::chrono::seconds kLookInterval{10};

double SecondsOf(std::chrono::steady_clock::duration time) {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) / 1000.0;
}

}  // namespace

void ChiefWatch::OnConnected(const std::string& task) {
  if (task != chief_) return;
  {
    MutexLock lock(mu_);
    if (state_ == State::kNotSeen) LogDebug("cluster", self_, " sees the chief ", chief_);
    if (state_ != State::kDone) state_ = State::kConnected;
  }
  changed_.NotifyAll();
}

void ChiefWatch::OnDisconnected(const std::string& task) {
  if (task != chief_) return;
  {
    MutexLock lock(mu_);
    if (state_ != State::kConnected) return;
    state_ = State::kGone;
    gone_since_ = Clock::now();
  }
  changed_.NotifyAll();
}

void ChiefWatch::OnTrainingDone() {
  {
    MutexLock lock(mu_);
    state_ = State::kDone;
  }
  changed_.NotifyAll();
}

bool ChiefWatch::WaitsForChief() const {
  MutexLock lock(mu_);
  return has_other_chief() && (state_ == State::kNotSeen || state_ == State::kGone);
}

bool ChiefWatch::training_done() const {
  MutexLock lock(mu_);
  return state_ == State::kDone;
}

void ChiefWatch::SetLeases(size_t open) {
  {
    MutexLock lock(mu_);
    leases_ = open;
  }
  changed_.NotifyAll();
}

void ChiefWatch::Stop() {
  {
    MutexLock lock(mu_);
    stopped_ = true;
  }
  changed_.NotifyAll();
}

void ChiefWatch::WaitForEnd(const Limits& limits, std::chrono::milliseconds missing_interval, const Look& look) {
  const Clock::time_point start = Clock::now();
  const Clock::time_point end =
      limits.chief.count() > 0 ? DeadlineAfter(limits.chief, start) : Clock::time_point::max();
  const auto interval = std::min<std::chrono::milliseconds>(missing_interval, kLookInterval);
  Clock::time_point next_say = DeadlineAfter(missing_interval, start);
  while (WaitUntilLookIsDue(std::min(Clock::now() + interval, end), limits.orphan)) {
    const std::string reason = look();
    if (reason.empty()) continue;
    ThrowIfGoneFor(limits.orphan, reason);
    const Clock::time_point now = Clock::now();
    {
      MutexLock lock(mu_);
      if (state_ != State::kNotSeen) continue;
    }
    if (now >= end) {
      throw UnavailableError(StrCat("[cluster] ", self_, " ends: expected the chief ", chief_, " to come within ",
                                    SecondsOf(limits.chief), " s (chief timeout); got none: ", reason,
                                    "; start the chief, or set a longer chief timeout"));
    }
    if (now < next_say) continue;
    next_say = DeadlineAfter(missing_interval, now);
    LogInfo("cluster", self_, " still waits for the chief ", chief_, ", ", SecondsOf(now - start),
            " s so far: ", reason);
  }
}

bool ChiefWatch::WaitUntilLookIsDue(Clock::time_point next_look, std::chrono::milliseconds orphan) {
  MutexLock lock(mu_);
  for (;;) {
    if (stopped_ || (state_ == State::kDone && leases_ == 0)) return false;
    Clock::time_point until = Clock::time_point::max();
    if (state_ == State::kNotSeen && has_other_chief()) until = next_look;
    if (state_ == State::kGone && orphan.count() > 0) until = DeadlineAfter(orphan, gone_since_);
    if (until == Clock::time_point::max()) {
      changed_.Wait(mu_);  // for the chief, the end of a session, or Stop: a server serves until it is told to end
    } else if (Clock::now() >= until) {
      return true;
    } else {
      changed_.WaitUntil(mu_, until);
    }
  }
}

void ChiefWatch::ThrowIfGoneFor(std::chrono::milliseconds orphan, const std::string& reason) {
  MutexLock lock(mu_);
  if (state_ != State::kGone || orphan.count() <= 0 || Clock::now() < DeadlineAfter(orphan, gone_since_)) return;
  throw UnavailableError(StrCat("[cluster] ", self_, " ends: the chief ", chief_, " has been gone for ",
                                SecondsOf(orphan), " s (orphan timeout): ", reason));
}

void ChiefWatch::ThrowIfLost(std::chrono::milliseconds orphan, const Look& look) {
  {
    MutexLock lock(mu_);
    if (!has_other_chief() || stopped_ || state_ == State::kConnected || state_ == State::kDone) return;
  }
  const std::string reason = look();
  if (!reason.empty()) ThrowIfGoneFor(orphan, reason);
}

}  // namespace cohort
