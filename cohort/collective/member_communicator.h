// MemberCommunicator: the Communicator of one of a group's members in this process. Internal to collective/.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "cohort/collective/call.h"
#include "cohort/collective/schedule.h"
#include "cohort/core/mutex.h"
#include "cohort/device/communicator.h"

namespace cohort::collective {

class GroupCore;

// Checks the calls of one member, numbers their rounds, and passes them to the group's engine. Each local member has
// one communicator. The group, kernels and programs share ownership of it. After the group has failed or is closed,
// `done` of each call gets the reason. After the GroupCore is destroyed, `done` gets kFailedPrecondition. Thread-safe.
class MemberCommunicator final : public Communicator {
 public:
  MemberCommunicator(const std::shared_ptr<GroupCore>& core, int rank);

  std::string Describe() const override;
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool TakesDeviceMemory(const Device& device) const override;
  void AllReduceAsync(const CollectiveId& id, Tensor input, ReduceOp op, Done done) override;
  void BroadcastAsync(const CollectiveId& id, Tensor value, int root, Done done) override;
  void AllGatherAsync(const CollectiveId& id, Tensor input, Done done) override;
  void ReduceScatterAsync(const CollectiveId& id, Tensor input, ReduceOp op, Done done) override;
  void BarrierAsync(const CollectiveId& id, Done done) override;
  void Abort(const Status& why) override;
  Status status() const override;

 private:
  struct Instance {
    int64_t rounds = 0;                            // calls so far
    std::shared_ptr<const StepSchedule> schedule;  // of the last call
  };

  void Begin(const CollectiveId& id, const CallSignature& signature, Tensor input, Done done) COHORT_EXCLUDES(mu_);
  // Sets the call's algorithm and shapes, which follow from its input and the group's options. Throws
  // InvalidArgumentError if the input cannot be sent or reduced.
  static void CompleteSignature(GroupCore& core, CollectiveCall& call);
  // Sets the call's round and schedule.
  void NumberCall(GroupCore& core, const CollectiveId& id, CollectiveCall& call) COHORT_EXCLUDES(mu_);
  // Called if the engine's Begin has thrown: the next call of this instance gets the round.
  void ReturnRound(const CallId& id) COHORT_EXCLUDES(mu_);

  const std::weak_ptr<GroupCore> core_;
  const int rank_;
  const int size_;
  Mutex mu_;
  std::map<int64_t, Instance> instances_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::collective
