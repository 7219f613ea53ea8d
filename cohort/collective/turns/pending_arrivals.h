// PendingArrivals: the members that have begun one execution of a collective, as rank 0 knows them. Internal to turns/.
#pragma once

#include <string>
#include <vector>

#include "cohort/collective/call.h"
#include "cohort/collective/engine.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

// Collects the members that have begun the collective, until all have. The TurnOrder of rank 0's process owns it:
// makes it at the first arrival, and drops it when the collective gets its turn or the group fails. Thread-safe.
class PendingArrivals final : public UnfinishedCollective {
 public:
  // `name` and `signature` are those of the member that has arrived first, `first`.
  PendingArrivals(const EngineHost& host, std::string name, const CallId& id, int first,
                  const CallSignature& signature);

  // Records that the member `rank` has begun the collective. Returns true if all members have begun it now. If the
  // signature `theirs` differs from that of the first member, sets `*different` to the error and returns false.
  bool Arrive(int rank, const CallSignature& theirs, uint64_t schedule_fingerprint, Status* different)
      COHORT_EXCLUDES(mu_);
  const CallSignature& signature() const { return signature_; }
  // Returns the fingerprints of the members' schedules, by rank, if all have arrived. Otherwise returns an empty
  // vector.
  std::vector<uint64_t> ScheduleFingerprints() const COHORT_EXCLUDES(mu_);
  // Returns an error if this collective can never get its turn. There are two such cases: a member that has not arrived
  // is gone; or all members have arrived, their schedules are still being compared, and any member is gone. Otherwise
  // returns ok.
  Status WhyNever() const COHORT_EXCLUDES(mu_);

  std::string Describe() const override { return DescribeCall(name_, id_, signature_); }
  // Names the members that have not arrived. Returns "" if all have arrived; then each TurnCall describes its own wait.
  std::string DescribeWait() const override COHORT_EXCLUDES(mu_);
  std::string name() const override { return name_; }
  std::optional<uint64_t> Stamp() const override COHORT_EXCLUDES(mu_);
  std::vector<int> AwaitedRanks() const override COHORT_EXCLUDES(mu_);

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
