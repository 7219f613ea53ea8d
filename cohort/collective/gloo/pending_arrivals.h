// PendingArrivals: what rank 0 knows about one execution of a collective that a member has begun. Internal to gloo/.
#pragma once

#include <string>
#include <vector>

#include "cohort/collective/call.h"
#include "cohort/collective/engine.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

// Collects which members have begun the collective, until all have. The GlooEngine of rank 0's process makes it with
// the first arrival and drops it when the collective gets its turn. Thread-safe.
class PendingArrivals final : public UnfinishedCollective {
 public:
  // `name` and `signature` are those of the member that has arrived first, `first`.
  PendingArrivals(const EngineHost& host, std::string name, const CallId& id, int first,
                  const CallSignature& signature);

  // A member has begun the collective. Returns whether all have now. If the signature differs from the first one, sets
  // `*different` to the error and returns false.
  bool Arrive(int rank, const CallSignature& theirs, uint64_t schedule_fingerprint, Status* different)
      COHORT_EXCLUDES(mu_);
  const CallSignature& signature() const { return signature_; }
  // Returns the fingerprints of the members' schedules by rank if all have arrived, else an empty vector.
  std::vector<uint64_t> ScheduleFingerprints() const COHORT_EXCLUDES(mu_);
  // Returns why a member that has not arrived never will, or why a member that has arrived can no longer send its
  // schedule; ok if there is no such member.
  Status WhyNever() const COHORT_EXCLUDES(mu_);

  std::string Describe() const override { return DescribeCall(name_, id_, signature_); }
  // Returns "" once all have arrived: what the collective waits for then is told by the calls.
  std::string DescribeWait() const override COHORT_EXCLUDES(mu_);

 private:
  const EngineHost& host_;
  const std::string name_;
  const CallId id_;
  const int first_;
  const CallSignature signature_;
  mutable Mutex mu_;
  std::vector<bool> arrived_ COHORT_GUARDED_BY(mu_);
  std::vector<uint64_t> schedule_fingerprints_ COHORT_GUARDED_BY(mu_);
  bool complete_ COHORT_GUARDED_BY(mu_) = false;
};

}  // namespace cohort::collective
