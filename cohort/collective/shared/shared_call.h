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

// Collects the calls of all members; the last member to arrive computes for all. The SharedEngine makes it when the
// first member begins the collective. The engine and the threads that work on it share ownership. Thread-safe.
class SharedCall final : public UnfinishedCollective, public std::enable_shared_from_this<SharedCall> {
 public:
  SharedCall(EngineHost& host, const ReductionTable& reductions, const CallId& id);

  // Adds a member's call. If all members have arrived now, computes and ends all calls, on this thread and, if the
  // inputs have 1 MiB or more together, also on the group's workers. If the call's signature differs from that of the
  // first member, fails the group and ends the calls.
  void Arrive(CollectiveCall call) COHORT_EXCLUDES(mu_);
  // Ends the calls that have arrived with `why`. Does nothing if all members have arrived, because the calls then end
  // when the results are computed. After the group has failed, the caller must call Fail again after each Arrive.
  void Fail(const Status& why) COHORT_EXCLUDES(mu_);

  std::string Describe() const override COHORT_EXCLUDES(mu_);
  std::string DescribeWait() const override COHORT_EXCLUDES(mu_);
  std::string name() const override COHORT_EXCLUDES(mu_);
  std::optional<uint64_t> Stamp() const override COHORT_EXCLUDES(mu_);
  std::vector<int> AwaitedRanks() const override COHORT_EXCLUDES(mu_);

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
  int first_ COHORT_GUARDED_BY(mu_) = -1;                     // the rank that has arrived first; -1: none
  std::string first_name_ COHORT_GUARDED_BY(mu_);             // of the call of first_
  CallSignature first_signature_ COHORT_GUARDED_BY(mu_);      // of the call of first_
  int arrived_ COHORT_GUARDED_BY(mu_) = 0;
  bool complete_ COHORT_GUARDED_BY(mu_) = false;  // all members have arrived; the thread that computes has the calls
  bool failed_ COHORT_GUARDED_BY(mu_) = false;
};

}  // namespace cohort::collective
