// SharedEngine: runs the collectives of a group whose members are all of one process. Nothing is sent: the last member
// to arrive at a collective computes it for all members. Internal to collective/.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "cohort/collective/engine.h"
#include "cohort/collective/shared/shared_call.h"
#include "cohort/core/mutex.h"
#include "cohort/device/reduction.h"

namespace cohort::collective {

// Serves groups of one process, unless they ask for an algorithm that has a plan. The group owns it. Thread-safe. It
// has no threads: the thread that begins the last member's call computes, and the group's workers help if there is much
// work.
class SharedEngine final : public CollectiveEngine {
 public:
  // Throws FailedPreconditionError if no backend has registered its reductions.
  explicit SharedEngine(EngineHost& host);

  Algorithm AlgorithmOf(DType, int64_t) const override { return Algorithm::kShared; }
  bool TakesDeviceMemory(const DeviceCollectives& collectives) const override {
    return collectives.Serves(host_.members().size());
  }
  void Begin(CollectiveCall&& call) override COHORT_EXCLUDES(mu_);
  // Throws DataLossError, because no peer sends messages to a group of one process.
  void Deliver(const DataMessage& data, Tensor tensor, bool may_compute_inline) override;
  void OnPeerGone() override {}
  void OnSchedulesAgreed() override {}
  void AppendUnfinished(std::vector<std::shared_ptr<UnfinishedCollective>>& all) override COHORT_EXCLUDES(mu_);
  void Fail(const Status& why) override COHORT_EXCLUDES(mu_);

 private:
  // A collective that at least one member has not begun yet.
  struct Open {
    std::shared_ptr<SharedCall> call;
    int first = -1;                     // the rank that has begun it first
    uint64_t schedule_fingerprint = 0;  // of that rank
    int begun = 0;                      // members that have begun it
  };

  // Returns the entry of the collective to which `call` belongs. Makes the entry if this member is the first to begin
  // the collective. Removes the entry from open_ if this member is the last.
  Open FindOrOpen(const CollectiveCall& call) COHORT_EXCLUDES(mu_);

  EngineHost& host_;
  const ReductionTable& reductions_;
  Mutex mu_;
  std::map<CallId, Open> open_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::collective
