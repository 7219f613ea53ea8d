// StepError: the error of a step on a stream, for kernels that find bad data after they have returned.
#pragma once

#include <atomic>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"

namespace cohort {

// A kernel on a stream cannot throw once it is enqueued. If its work finds bad data it sets the step's error, in stream
// order; work of the step that is enqueued behind it does not run, so that later updates of variables are not applied,
// and the executor fails the step when the step's last event is reached. Belongs to the executor that runs the step;
// functions that the step calls share it. Thread-safe.
class StepError {
 public:
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
  }

 private:
  mutable Mutex mu_;
  Status status_ COHORT_GUARDED_BY(mu_);
  std::atomic<bool> set_{false};
};

}  // namespace cohort
