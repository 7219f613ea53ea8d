// StepClockResource: counts the steps of each session that trains, and lets no session run too far ahead of the others.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/core/tensor.h"
#include "cohort/device/resource.h"
#include "cohort/runtime/data_flow/pending_kernel.h"

namespace cohort {

// The numbers of steps of the sessions that are alive. A session is counted from its Join or its first Tick until it
// ends. A kernel that has to wait is kept in a list, and no thread is blocked. Its wait ends with an error if its step
// is cancelled or if the container of the clock is cleared. The task's ResourceManager owns the clock. Thread-safe.
// Join and Tick end the kernel now or later, on any thread; they may also continue other steps on the calling thread.
// They must be called on an object that a shared_ptr owns.
class StepClockResource final : public Resource, public std::enable_shared_from_this<StepClockResource> {
 public:
  explicit StepClockResource(std::string name) : name_(std::move(name)) {}

  // Counts the kernel's session from now on. It begins with the number of the slowest session.
  void Join(PendingKernel kernel) COHORT_EXCLUDES(mu_);
  // Adds 1 to the steps of the kernel's session. Then waits until they are at most `limit` - 1 more than those of the
  // slowest session, so that after one more step they are at most `limit` more. If `limit` is less than 1, does not
  // wait. `staleness` is kept for TakeStaleness.
  void Tick(PendingKernel kernel, int64_t limit, int64_t staleness) COHORT_EXCLUDES(mu_);
  // Returns the `staleness` of all Ticks since the last call, but of not more than the last kMostKept.
  std::vector<int64_t> TakeStaleness() COHORT_EXCLUDES(mu_);

  std::string Describe() const override { return "step clock '" + name_ + "'"; }
  void OnRemoved(const std::string& container) override COHORT_EXCLUDES(mu_);
  void OnSessionEnded(uint64_t session) override COHORT_EXCLUDES(mu_);

  static constexpr size_t kMostKept = 100'000;

 private:
  struct Waiting {
    uint64_t id;
    PendingKernel kernel;
    uint64_t session;
    int64_t limit;
  };
  // A kernel that has left the list and is to be ended without the lock.
  struct Ended {
    PendingKernel kernel;
    Status status;
  };

  int64_t SlowestLocked() const COHORT_REQUIRES(mu_);
  // Moves the kernels that need not wait any more to `ended`.
  void Serve(std::vector<Ended>* ended) COHORT_REQUIRES(mu_);
  void Cancel(uint64_t id, const Status& why) COHORT_EXCLUDES(mu_);
  void EndAll(std::vector<Ended> ended) COHORT_EXCLUDES(mu_);

  const std::string name_;
  Mutex mu_;
  Status removed_ COHORT_GUARDED_BY(mu_);                     // why the clock cannot be used any more, or OK
  std::map<uint64_t, int64_t> steps_ COHORT_GUARDED_BY(mu_);  // by session
  std::deque<Waiting> waiting_ COHORT_GUARDED_BY(mu_);
  std::deque<int64_t> staleness_ COHORT_GUARDED_BY(mu_);
  uint64_t next_id_ COHORT_GUARDED_BY(mu_) = 1;
};

}  // namespace cohort
