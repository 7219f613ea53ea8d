// ClosureId: says of which closure of a coordinator a step is an attempt. AppliedUpdates: the updates that attempts
// have made on a task, so that a further attempt does not make them again.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "cohort/core/export.h"
#include "cohort/core/mutex.h"
#include "cohort/device/closure_id.h"

namespace cohort {

// TaskResources owns it. It keeps what it knows of a closure until the coordinator says that the closure has ended, and
// what it knows of a coordinator until kCoordinators others were seen. Thread-safe.
class AppliedUpdates {
 public:
  static constexpr size_t kCoordinators = 4096;

  // Returns true if no attempt of the closure has made `update` here; then the caller makes it, and calls Undo if that
  // fails. Returns false if an attempt has made it or is making it, or if the closure has ended. `update` is the same
  // text in every attempt.
  bool Begin(const ClosureId& closure, const std::string& update) COHORT_EXCLUDES(mu_);
  // The update was not made.
  void Undo(const ClosureId& closure, const std::string& update) COHORT_EXCLUDES(mu_);
  // Returns the number of closures of which something is known.
  size_t size() COHORT_EXCLUDES(mu_);

 private:
  struct Coordinator {
    int64_t lowest = 0;
    uint64_t used = 0;  // when it was last seen, in calls of Begin
    std::map<int64_t, std::set<std::string>> closures;
  };

  Mutex mu_;
  uint64_t calls_ COHORT_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, Coordinator> coordinators_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
