// ChiefWatch: what this task knows about the chief of its cluster.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "cohort/core/mutex.h"

namespace cohort {

// Knows whether the chief was never seen, is connected, is gone, or has said that training is done. A ClusterNode owns
// it and reports connections to it; the StepService reports leases and the end of training. Server::Join waits here for
// the end, and workers that wait for the chief check here whether it is lost. Thread-safe. Stop() makes every
// WaitForEnd return.
class ChiefWatch {
 public:
  // Zero means no limit.
  struct Limits {
    std::chrono::milliseconds orphan;  // how long to wait for a chief that was connected and is gone
    std::chrono::milliseconds chief;   // how long to wait for a chief that was never connected
  };
  // Makes one attempt to connect to the chief, on the thread that calls WaitForEnd or ThrowIfLost. Returns "" if the
  // chief is connected, else the reason why it is not. If the attempt makes a connection, the ClusterNode calls
  // OnConnected, as for every connection.
  using Look = std::function<std::string()>;

  // `self` and `chief` are full task names. `chief` is "" if the cluster has no chief.
  ChiefWatch(std::string self, std::string chief) : self_(std::move(self)), chief_(std::move(chief)) {}

  // Reports that `task` has connected.
  void OnConnected(const std::string& task) COHORT_EXCLUDES(mu_);
  // Reports that `task` is gone. Requires: its last connection has closed.
  void OnDisconnected(const std::string& task) COHORT_EXCLUDES(mu_);
  // The chief (or a program in its place) has said that training is done.
  void OnTrainingDone() COHORT_EXCLUDES(mu_);
  // Returns whether another task is the chief, is not connected, and has not said that training is done.
  bool WaitsForChief() const COHORT_EXCLUDES(mu_);
  // Returns whether OnTrainingDone was called.
  bool training_done() const COHORT_EXCLUDES(mu_);
  // `open` is the number of sessions that have a lease on this task.
  void SetLeases(size_t open) COHORT_EXCLUDES(mu_);
  void Stop() COHORT_EXCLUDES(mu_);

  // Waits until training is done and no session has a lease, or until Stop. If the chief was never connected, calls
  // `look` every 10 s (or every `missing_interval` if that is shorter), and logs every `missing_interval` that the
  // chief is missing. If the chief is gone, calls `look` when limits.orphan has passed. Throws UnavailableError if
  // limits.chief (for a chief that was never connected) or limits.orphan (for a chief that is gone) has passed and
  // `look` does not find the chief. The message has the chief's name, the limit and the reason that `look` returned.
  // There is no limit if this task is the chief or if the cluster has no chief. Requires: `missing_interval` is not
  // zero.
  void WaitForEnd(const Limits& limits, std::chrono::milliseconds missing_interval, const Look& look)
      COHORT_EXCLUDES(mu_);

  // For a task that waits for something that the chief does. If the chief is not connected and training is not done,
  // calls `look` once. Throws UnavailableError if `look` does not find the chief, and the chief was connected to this
  // task and has been gone for `orphan` (zero: never throws). Does nothing after Stop, and on the chief itself.
  void ThrowIfLost(std::chrono::milliseconds orphan, const Look& look) COHORT_EXCLUDES(mu_);

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { kNotSeen, kConnected, kGone, kDone };

  bool has_other_chief() const { return !chief_.empty() && chief_ != self_; }
  // Waits until the end; or until `next_look` if the chief was never seen; or until the orphan limit if it is gone.
  // Returns false at the end, and true if the caller must look for the chief now.
  bool WaitUntilLookIsDue(Clock::time_point next_look, std::chrono::milliseconds orphan) COHORT_EXCLUDES(mu_);
  void ThrowIfGoneFor(std::chrono::milliseconds orphan, const std::string& reason) COHORT_EXCLUDES(mu_);

  const std::string self_;
  const std::string chief_;
  mutable Mutex mu_;
  CondVar changed_;
  State state_ COHORT_GUARDED_BY(mu_) = State::kNotSeen;
  Clock::time_point gone_since_ COHORT_GUARDED_BY(mu_);
  size_t leases_ COHORT_GUARDED_BY(mu_) = 0;
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;
};

}  // namespace cohort
