// RemoteValue: the result of a closure that a ClusterCoordinator runs on some worker.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/core/mutex.h"
#include "cohort/runtime/session.h"

namespace cohort::distribute {

enum class RemoteValueStatus {
  kNotReady,  // the closure waits or runs
  kReady,     // there are values, or an error of the closure
  kAborted    // the closure was cancelled
};

// The place where the results of one closure arrive. The closure and the program's RemoteValues share it. Thread-safe.
// Internal to distribute/.
class COHORT_EXPORT RemoteResult {
 public:
  // Set the outcome and wake all calls of Wait. Only the first call has an effect.
  void SetValues(RunResults values) COHORT_EXCLUDES(mu_);
  void SetError(Status error) COHORT_EXCLUDES(mu_);
  void Abort(std::string why) COHORT_EXCLUDES(mu_);
  RemoteValueStatus status() COHORT_EXCLUDES(mu_);
  // Waits until there is an outcome, but at most until `deadline`. Returns false if there is none by then.
  bool WaitUntil(std::chrono::steady_clock::time_point deadline) COHORT_EXCLUDES(mu_);
  // Returns the values. Throws the error. Requires: status() is not kNotReady.
  RunResults Get() COHORT_EXCLUDES(mu_);

 private:
  void Set(RemoteValueStatus status, Status error, RunResults values) COHORT_EXCLUDES(mu_);

  Mutex mu_;
  CondVar changed_;
  RemoteValueStatus status_ COHORT_GUARDED_BY(mu_) = RemoteValueStatus::kNotReady;
  Status error_ COHORT_GUARDED_BY(mu_);
  RunResults values_ COHORT_GUARDED_BY(mu_);
};

// The result of a closure. Cheap to copy; copies are of the same closure. It may outlive the coordinator. Thread-safe.
class COHORT_EXPORT RemoteValue {
 public:
  RemoteValue() = default;
  explicit RemoteValue(std::shared_ptr<RemoteResult> result) : result_(std::move(result)) {}

  bool valid() const { return result_ != nullptr; }
  // Returns the state without a wait. Requires: valid().
  RemoteValueStatus status() const { return result_->status(); }
  // Waits until the closure has ended, with values, with an error, or because it was cancelled. Requires: valid().
  void Wait() const;
  // Waits until the closure has ended, and returns the values of its fetches, in order. The wait ends because the
  // coordinator gives each closure an end. Throws the error of the closure; CancelledError if the closure was
  // cancelled; DeadlineExceededError if the closure has not ended after `timeout`; InvalidArgumentError if valid() is
  // false.
  RunResults Fetch(std::chrono::milliseconds timeout = std::chrono::milliseconds::max()) const;

 private:
  std::shared_ptr<RemoteResult> result_;
};

}  // namespace cohort::distribute
