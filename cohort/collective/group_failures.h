// GroupFailures: why groups of this process have failed.
#pragma once

#include <map>

#include "cohort/collective/messages.h"
#include "cohort/core/error.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

// Remembers the failures of the groups that a process has joined over connections. Two messages quote them: the answer
// to a process that joins a failed group later, and the message of a process that leaves a healthy group because
// another one has failed. The GroupDirectory and its GroupCores share ownership. Thread-safe.
class GroupFailures {
 public:
  void Add(const GroupRef& ref, const Status& why) COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    failed_[ref] = why;
    latest_ = ref;
    if (failed_.size() > kMost) failed_.erase(failed_.begin());
  }
  // The group is joined again.
  void Forget(const GroupRef& ref) COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    failed_.erase(ref);
  }
  // Returns ok if the group has not failed.
  Status Find(const GroupRef& ref) const COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    const auto it = failed_.find(ref);
    return it == failed_.end() ? Status() : it->second;
  }
  // Returns the failure that was added last, or ok if there is none or its group was joined again.
  Status Latest() const COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    const auto it = failed_.find(latest_);
    return it == failed_.end() ? Status() : it->second;
  }

 private:
  static constexpr size_t kMost = 1000;

  mutable Mutex mu_;
  std::map<GroupRef, Status> failed_ COHORT_GUARDED_BY(mu_);
  GroupRef latest_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::collective
