// GroupFailures: why groups of this process have failed.
#pragma once

#include <algorithm>
#include <deque>

#include "cohort/collective/messages.h"
#include "cohort/core/error.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

// Remembers the failures of the groups that a process has joined over connections. Two messages quote them: the answer
// to a process that joins a failed group later, and the message of a process that leaves a healthy group because
// another group has failed. It keeps at most the last 1000 failures. The GroupDirectory and its GroupCores share
// ownership. Thread-safe.
class GroupFailures {
 public:
  static constexpr size_t kMost = 1000;

  // Adds a failure. It replaces those of the group's earlier generations. Does nothing if a failure of this generation
  // is known.
  void Add(const GroupRef& ref, const Status& why) COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    const auto same = [&](const Failure& failure) { return failure.ref == ref; };
    if (std::any_of(failures_.begin(), failures_.end(), same)) return;
    std::erase_if(failures_, [&](const Failure& failure) { return AnswersFor(ref, failure.ref); });
    failures_.push_back({ref, why, false});
    if (failures_.size() > kMost) failures_.pop_front();
  }
  // This process joins the group. Forgets the failure of this generation. Latest() does not return those of earlier
  // generations any more, because the group has formed again after them.
  void OnJoined(const GroupRef& ref) COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    std::erase_if(failures_, [&](const Failure& failure) { return failure.ref == ref; });
    for (Failure& failure : failures_) failure.formed_again |= AnswersFor(ref, failure.ref);
  }
  // Returns the failure of the group, or of a later generation of it. Returns ok if there is none.
  Status Find(const GroupRef& ref) const COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    const auto found = std::find_if(failures_.begin(), failures_.end(),
                                    [&](const Failure& failure) { return AnswersFor(failure.ref, ref); });
    return found == failures_.end() ? Status() : found->why;
  }
  // Returns the failure that was added last, among the groups that this process has not joined again since. Returns ok
  // if there is none.
  Status Latest() const COHORT_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    const auto found = std::find_if(failures_.rbegin(), failures_.rend(),
                                    [](const Failure& failure) { return !failure.formed_again; });
    return found == failures_.rend() ? Status() : found->why;
  }

 private:
  struct Failure {
    GroupRef ref;
    Status why;
    bool formed_again;  // this process has joined a later generation of the group
  };

  // Returns whether `earlier` is the same group as `ref` or an earlier generation of it.
  static bool AnswersFor(const GroupRef& ref, const GroupRef& earlier) {
    return ref.key == earlier.key && ref.generation >= earlier.generation;
  }

  mutable Mutex mu_;
  std::deque<Failure> failures_ COHORT_GUARDED_BY(mu_);  // in the order of Add
};

}  // namespace cohort::collective
