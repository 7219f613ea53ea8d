// LocalMember: a member of a group in this process - its runs, and the Communicator that its device's kernels call.
// Internal to collective/.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/collective/messages.h"
#include "cohort/collective/plan_run.h"
#include "cohort/core/mutex.h"
#include "cohort/device/communicator.h"

namespace cohort::collective {

class GroupCore;

// Thread-safe. Belongs to its core; others may hold it longer.
class LocalMember {
 public:
  LocalMember(GroupCore& core, int rank) : core_(core), rank_(rank) {}

  int rank() const { return rank_; }
  // The next round of the collective. `signature.algorithm` is chosen here.
  void Begin(const CollectiveId& id, Signature signature, Tensor input, Communicator::Done done);
  void Deliver(const DataMessage& data, Tensor tensor, bool here);
  void Retire(const CallId& call);
  void FailAll(const Status& why);
  // Each run looks whether it waits for a member that is gone.
  void CheckPeers();
  void CheckSchedules();
  void AddUnderWay(std::vector<std::shared_ptr<Pending>>& all) EXCLUDES(mu_);

 private:
  std::vector<std::shared_ptr<PlanRun>> Runs() EXCLUDES(mu_);
  std::shared_ptr<PlanRun> FindOrMake(const CallId& call) REQUIRES(mu_);
  Plan MakePlan(const Signature& signature) const;
  Shape OutputShape(const Signature& signature) const;

  GroupCore& core_;
  const int rank_;
  Mutex mu_;
  std::map<CallId, std::shared_ptr<PlanRun>> runs_ GUARDED_BY(mu_);
  struct Instance {
    int64_t rounds = 0;
    Signature signature;
    std::shared_ptr<const Plan> plan;          // of `signature`
    std::shared_ptr<const Schedule> schedule;  // of the last call
  };
  std::map<int64_t, Instance> instances_ GUARDED_BY(mu_);
};

// The Communicator of a local member. Holds the core weakly.
std::shared_ptr<Communicator> MakeCommunicator(const std::shared_ptr<GroupCore>& core, size_t local);

}  // namespace cohort::collective
