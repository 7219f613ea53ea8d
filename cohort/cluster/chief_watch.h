// ChiefWatch: what this task knows of its cluster's chief, and the waits that end with it.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "cohort/core/mutex.h"

namespace cohort {

// Knows whether the chief was never seen, is connected, has gone, or has said that training is done. The node that owns
// it reports connections and messages; Server::Join and workers that wait for the chief's initial values wait through
// it. Thread-safe. Stop() ends all waits.
class ChiefWatch {
 public:
  // Zero means: no limit.
  struct Limits {
    std::chrono::milliseconds orphan;  // for a chief that was connected and is not connected any more
    std::chrono::milliseconds chief;   // for a chief that was never connected
  };
  // Makes one attempt to connect to the chief. Returns "" if the chief is connected, else the reason why not. The
  // connection itself is reported by OnConnected.
  using Look = std::function<std::string()>;

  // `self` and `chief` are full task names. `chief` is "" in a cluster that has no chief.
  ChiefWatch(std::string self, std::string chief) : self_(std::move(self)), chief_(std::move(chief)) {}

  void OnConnected(const std::string& task) COHORT_EXCLUDES(mu_);
  // Requires: the last connection to `task` has closed.
  void OnDisconnected(const std::string& task) COHORT_EXCLUDES(mu_);
  // The chief, or a program that took its place, has said that training is done.
  void OnTrainingDone() COHORT_EXCLUDES(mu_);
  // `open`: how many sessions hold a lease on this task.
  void SetLeases(size_t open) COHORT_EXCLUDES(mu_);
  void Stop() COHORT_EXCLUDES(mu_);

  // Waits until training is done and no session holds a lease, or until Stop. While the chief is not connected, looks
  // for it from time to time, and says every `missing_interval` that it is missing. Throws UnavailableError with the
  // chief, the wait and the reason of the last look if a limit is reached. There is no limit on the chief itself, or if
  // the cluster has no chief.
  void WaitForEnd(const Limits& limits, std::chrono::milliseconds missing_interval, const Look& look)
      COHORT_EXCLUDES(mu_);

  // For a task that waits for what the chief does. If the chief is not connected, looks for it once. Throws
  // UnavailableError if the chief was connected to this task and has been gone for `orphan` (zero: never throws).
  void ThrowIfLost(std::chrono::milliseconds orphan, const Look& look) COHORT_EXCLUDES(mu_);

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { kNotSeen, kConnected, kGone, kDone };

  bool has_other_chief() const { return !chief_.empty() && chief_ != self_; }
  // Waits for the end, for `next_look` while the chief was never seen, or for the orphan limit. Returns false at the
  // end, and true if the caller has to look for the chief now.
  bool WaitUntilLookIsDue(Clock::time_point next_look, std::chrono::milliseconds orphan) COHORT_EXCLUDES(mu_);
  void ThrowIfGoneFor(std::chrono::milliseconds orphan, const std::string& reason) COHORT_EXCLUDES(mu_);

  const std::string self_;
  const std::string chief_;
  Mutex mu_;
  CondVar changed_;
  State state_ COHORT_GUARDED_BY(mu_) = State::kNotSeen;
  Clock::time_point gone_since_ COHORT_GUARDED_BY(mu_);
  size_t leases_ COHORT_GUARDED_BY(mu_) = 0;
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;
};

}  // namespace cohort
