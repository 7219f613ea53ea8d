// PlanEngine: runs collectives as plans, whose messages go over the cluster's connections. Internal to collective/.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/collective/engine.h"
#include "cohort/collective/plan/plan.h"
#include "cohort/collective/plan/plan_run.h"
#include "cohort/core/mutex.h"
#include "cohort/device/reduction.h"

namespace cohort::collective {

// Serves every group that no other engine serves. Each local member has its own runs of plans. Members of the same
// process exchange messages too, but without a connection. The group owns the engine. Thread-safe. It has no threads:
// plans run on the threads that begin calls or deliver messages, and on the group's workers.
class PlanEngine final : public CollectiveEngine {
 public:
  // Throws FailedPreconditionError if no backend has registered reductions for the host.
  explicit PlanEngine(EngineHost& host);

  Algorithm AlgorithmOf(DType dtype, int64_t bytes) const override;
  void Begin(CollectiveCall&& call) override;
  void Deliver(const DataMessage& data, Tensor tensor, bool may_compute_inline) override;
  void OnPeerGone() override;
  void OnSchedulesAgreed() override;
  void AppendUnfinished(std::vector<std::shared_ptr<UnfinishedCollective>>& all) override;
  void Fail(const Status& why) override;

 private:
  // One collective of a member, kept from round to round.
  struct Instance {
    int64_t rounds = 0;  // how many have begun
    CallSignature signature;
    std::shared_ptr<const Plan> plan;  // of `signature`
  };
  struct Member {
    explicit Member(int r) : rank(r) {}
    const int rank;
    Mutex mu;
    std::map<CallId, std::shared_ptr<PlanRun>> runs COHORT_GUARDED_BY(mu);  // that have not ended
    std::map<int64_t, Instance> instances COHORT_GUARDED_BY(mu);
  };

  Plan MakePlan(int rank, const CallSignature& signature) const;
  Member& MemberOf(int rank) { return *members_[static_cast<size_t>(host_.members().local_index(rank))]; }
  std::shared_ptr<PlanRun> FindOrMakeRun(Member& member, const CallId& id) COHORT_REQUIRES(member.mu);
  std::vector<std::shared_ptr<PlanRun>> Runs();

  EngineHost& host_;
  const ReductionTable& reductions_;
  std::vector<std::unique_ptr<Member>> members_;  // of the local ranks
};

}  // namespace cohort::collective
