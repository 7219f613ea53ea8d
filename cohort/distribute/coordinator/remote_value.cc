#include "cohort/distribute/coordinator/remote_value.h"

#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::distribute {

void RemoteResult::Set(RemoteValueStatus status, Status error, RunResults values) {
  MutexLock lock(mu_);
  if (status_ != RemoteValueStatus::kNotReady) return;
  status_ = status;
  error_ = std::move(error);
  values_ = std::move(values);
  changed_.NotifyAll();
}

void RemoteResult::SetValues(RunResults values) { Set(RemoteValueStatus::kReady, Status(), std::move(values)); }

void RemoteResult::SetError(Status error) { Set(RemoteValueStatus::kReady, std::move(error), {}); }

void RemoteResult::Abort(std::string why) {
  Set(RemoteValueStatus::kAborted, Status(Code::kCancelled, std::move(why)), {});
}

RemoteValueStatus RemoteResult::status() {
  MutexLock lock(mu_);
  return status_;
}

bool RemoteResult::WaitUntil(std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(mu_);
  while (status_ == RemoteValueStatus::kNotReady) {
    if (!changed_.WaitUntil(mu_, deadline)) return status_ != RemoteValueStatus::kNotReady;
  }
  return true;
}

RunResults RemoteResult::Get() {
  MutexLock lock(mu_);
  error_.ThrowIfError();
  return values_;
}

void RemoteValue::Wait() const { result_->WaitUntil(DeadlineAfter(kLongestLimit)); }

RunResults RemoteValue::Fetch(std::chrono::milliseconds timeout) const {
  if (result_ == nullptr) {
    throw InvalidArgumentError(
        "[coordinator] expected the RemoteValue of a closure; got an empty one: keep what Schedule returns");
  }
  if (!result_->WaitUntil(DeadlineAfter(timeout))) {
    throw DeadlineExceededError(
        StrCat("[coordinator] expected the closure to end within ", timeout.count(), " ms; it still waits or runs"));
  }
  return result_->Get();
}

}  // namespace cohort::distribute
