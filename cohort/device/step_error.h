// StepError: the error of a step on a stream, for kernels that find bad data after they have returned.
#pragma once

#include <atomic>
#include <cstdint>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/device/cancellation.h"

namespace cohort {

// A kernel on a stream cannot throw once it is enqueued. If its work finds bad data it sets the step's error, in stream
// order; work of the step that is enqueued behind it does not run, so that later updates of variables are not applied,
// and the executor fails the step when the step's last event is reached. Belongs to the executor that runs the step;
// functions that the step calls share it. Thread-safe.
//
// Work of a step asks MayRun when its turn on the stream has come. Work that updates a variable calls CountUpdate when
// it has changed the value. So what is still enqueued for a step that was cancelled does nothing, unless the step has
// changed a variable already: a set of updates that has begun is applied whole.
class StepError {
 public:
  // Whether work of the step still runs. Returns false if an error is set. If the step was cancelled and has changed no
  // variable, the cancellation becomes its error. `cancellation` may be null.
  bool MayRun(const CancellationManager* cancellation) {
    if (set()) return false;
    if (cancellation == nullptr || !cancellation->cancelled() || updates_applied() > 0) return true;
    Set(cancellation->status());
    return false;
  }
  void CountUpdate() { updates_applied_.fetch_add(1, std::memory_order_acq_rel); }
  // How many updates of the step have been applied.
  int64_t updates_applied() const { return updates_applied_.load(std::memory_order_acquire); }

  // Keeps `status` if nothing is set yet. The message must say which node failed (KernelContext::Describe does).
  // Requires: !status.ok().
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
  // Makes it ready for the next step. Requires: no work of the last step is enqueued any more.
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
