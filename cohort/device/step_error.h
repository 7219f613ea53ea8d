// StepError: the error of a step on a stream, for kernels that find bad data after they have returned.
#pragma once

#include <atomic>
#include <cstdint>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/device/cancellation.h"

namespace cohort {

// The error of one step at a time on a device with streams. The work that a kernel has enqueued cannot throw, because
// the kernel has returned. If the work finds bad data, it calls Set. Work of the step that is enqueued behind it then
// does nothing, so that later updates of variables are not applied. When the last work of the step has run, the run of
// the step sees the error and fails the step. The run (StepRun) owns the StepError; functions that the step calls share
// it. All methods but Reset are thread-safe.
//
// Work of a step calls MayRun when it is about to run on the stream. Work that updates a variable calls CountUpdate
// when it has changed the value. So work that is still enqueued when its step is cancelled does nothing, unless the
// step has changed a variable already: then all updates of the step are applied.
class StepError {
 public:
  // Returns whether the work may run. Returns false if an error is set. Returns false too if the step was cancelled and
  // has changed no variable; the reason of the cancellation then becomes the step's error. `cancellation` is the
  // step's, and may be null.
  bool MayRun(const CancellationManager* cancellation) {
    if (set()) return false;
    if (cancellation == nullptr || !cancellation->cancelled() || updates_applied() > 0) return true;
    Set(cancellation->status());
    return false;
  }
  void CountUpdate() { updates_applied_.fetch_add(1, std::memory_order_acq_rel); }
  // Returns how many updates of the step have been applied.
  int64_t updates_applied() const { return updates_applied_.load(std::memory_order_acquire); }

  // Sets the error. Does nothing if one is set already. The message must say which node failed:
  // KernelContext::Describe() returns text that names the node. Requires: !status.ok().
  void Set(const Status& status) {
    MutexLock lock(mu_);
    if (set_.load(std::memory_order_relaxed)) return;
    status_ = status;
    set_.store(true, std::memory_order_release);
  }
  bool set() const { return set_.load(std::memory_order_acquire); }
  // Returns the status that was set first, or OK if none was set.
  Status status() const {
    if (!set()) return {};
    MutexLock lock(mu_);
    return status_;
  }
  // Makes the object ready for the next step. Requires: no work of the last step is enqueued any more.
  void Reset() {
    MutexLock lock(mu_);
    status_ = {};
    set_.store(false, std::memory_order_relaxed);
    updates_applied_.store(0, std::memory_order_relaxed);
  }

 private:
  mutable Mutex mu_;
  Status status_ COHORT_GUARDED_BY(mu_);
  std::atomic<bool> set_{false};
  std::atomic<int64_t> updates_applied_{0};
};

}  // namespace cohort
