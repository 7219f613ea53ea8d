// SharedCall: one execution of one collective by members of one process. Internal to shared/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/collective/call.h"
#include "cohort/collective/engine.h"
#include "cohort/core/mutex.h"
#include "cohort/device/reduction.h"

namespace cohort::collective {

// Collects the calls of all members; the last member to arrive computes for all. The first member that begins the
// collective makes it, and every member that works on it shares ownership. Thread-safe.
class SharedCall final : public UnfinishedCollective, public std::enable_shared_from_this<SharedCall> {
 public:
  SharedCall(EngineHost& host, const ReductionTable& reductions, const CallId& id);

  // A member adds its call. If its signature differs from the first one, the group fails.
  void Arrive(CollectiveCall call) COHORT_EXCLUDES(mu_);
  // Ends the calls that have arrived with `why`, unless all members have arrived. Requires: after the group has failed,
  // the caller calls Fail after each Arrive.
  void Fail(const Status& why) COHORT_EXCLUDES(mu_);

  std::string Describe() const override COHORT_EXCLUDES(mu_);
  std::string DescribeWait() const override COHORT_EXCLUDES(mu_);

 private:
  struct Work;

  void Compute(std::vector<CollectiveCall> calls);
  // Ends the calls that have arrived. `results` is by rank. It is empty if `status` is an error.
  void End(std::vector<CollectiveCall> calls, const Status& status, std::vector<Tensor> results);

  EngineHost& host_;
  const ReductionTable& reductions_;
  const CallId id_;

  mutable Mutex mu_;
  std::vector<CollectiveCall> calls_ COHORT_GUARDED_BY(mu_);  // by rank; `done` is empty if the member has not arrived
  int first_ COHORT_GUARDED_BY(mu_) = -1;  // the rank that has arrived first; the next two are its own
  std::string first_name_ COHORT_GUARDED_BY(mu_);
  CallSignature first_signature_ COHORT_GUARDED_BY(mu_);
  int arrived_ COHORT_GUARDED_BY(mu_) = 0;
  bool complete_ COHORT_GUARDED_BY(mu_) = false;  // all members have arrived; the thread that computes has the calls
  bool failed_ COHORT_GUARDED_BY(mu_) = false;
};

}  // namespace cohort::collective
