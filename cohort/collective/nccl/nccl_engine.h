// NcclEngine: runs the collectives of a group by a vendor's library, NCCL. Internal to collective/. The library stands
// behind CollectiveLibrary, which the backend of the members' devices offers.
//
// A TurnOrder makes all members make the library's calls in the same order. A member arrives only when its input is
// complete on its device. So the library never waits for a member that computes, and its calls have a limit of some
// seconds. If it passes, the members ask each other how far they are, and those that are behind are named.
//
// The library's identifier travels in the join messages. Each group makes a new one; so does each generation. When the
// group fails, every member aborts its communicator. If that hangs, the AbortGuard ends the process. The guard also
// fails the group if a member does not come back from a call of the library.
//
// If two members share a physical device, or (with AUTO) a member cannot open the library, all collectives of the group
// run as plans, through host memory. So do those that the library does not have, when they have got their turn:
// otherwise a member whose dtype or operation differs would wait in another place than the others, and nobody would
// compare them.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/engine.h"
#include "cohort/collective/nccl/abort_guard.h"
#include "cohort/collective/nccl/choice.h"
#include "cohort/collective/nccl/limits.h"
#include "cohort/collective/nccl/nccl_lane.h"
#include "cohort/collective/plan/plan_engine.h"
#include "cohort/collective/turns/failure_cause.h"
#include "cohort/collective/turns/turn_order.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

// Serves groups of several processes whose members are devices of one type, if the backend of that type has a library.
// It owns a lane for each local member. The group owns it. Thread-safe.
class NcclEngine final : public CollectiveEngine {
 public:
  NcclEngine(EngineHost& host, CollectiveLibrary& library);
  // Requires: Join has returned, or Connect was never called.
  ~NcclEngine() override = default;

  // Opens the library at the first call. Later calls return the same.
  std::vector<std::string> Endpoints() const override COHORT_EXCLUDES(endpoints_mu_);
  size_t NumEndpointsOf(int process) const override;
  void Connect(const std::vector<std::vector<std::string>>& endpoints) override;

  Algorithm AlgorithmOf(DType dtype, int64_t bytes) const override;
  bool TakesDeviceMemory(const DeviceCollectives&) const override { return true; }
  void Begin(CollectiveCall&& call) override;
  void Deliver(const DataMessage& data, Tensor tensor, bool may_compute_inline) override;
  void OnPeerGone() override;
  void OnPeerLeft(int process) override;
  void OnSchedulesAgreed() override;
  void AppendUnfinished(std::vector<std::shared_ptr<UnfinishedCollective>>& all) override;
  bool NeedsFarewells() const override { return uses_library_ && order_.NeedsFarewells(); }
  void Fail(const Status& why) override COHORT_EXCLUDES(mu_);
  bool IsOwnThread() const override;
  void Join() override;

 private:
  NcclLaneEvents EventsOf(int rank);
  // Sets choice_, and says why the library is not used. Throws FailedPreconditionError if it has to be.
  void Decide(const std::vector<std::vector<std::string>>& endpoints);
  bool RunsByLibrary(const CallSignature& signature) const;
  // Returns the algorithm of an all-reduce that runs as a plan.
  Algorithm PlanFor(DType dtype, size_t bytes) const;
  NcclLane& LaneOf(int rank) { return *lanes_[static_cast<size_t>(host_.members().local_index(rank))]; }
  // Copies the input to host memory, and the result back when the call ends.
  void MoveToHost(CollectiveCall& call);
  // Takes a call that will run as a plan, and whose input lies in host memory.
  void BeginOnHost(CollectiveCall&& call);
  void BeginPlan(CollectiveCall&& call);
  void OnReady(CollectiveCall&& call);
  void OnTurnOfPlan(const std::shared_ptr<TurnCall>& call);
  void Ask(int rank, int64_t turn);
  void OnStuck(int rank, std::chrono::steady_clock::duration limit);
  // Fails the group with `seen`, unless it has failed or fails soon for the real reason. Returns why it has failed.
  Status Explain(int rank, const Status& seen);

  EngineHost& host_;
  CollectiveLibrary& library_;
  PlanEngine plans_;
  TurnOrder order_;
  std::vector<std::unique_ptr<NcclLane>> lanes_;  // of the local ranks
  std::atomic<bool> uses_library_{false};         // set by Connect, with choice_
  NcclChoice choice_;
  AbortGuard guard_{[this](int rank, std::chrono::steady_clock::duration limit) { OnStuck(rank, limit); }};

  mutable Mutex endpoints_mu_;
  mutable std::vector<std::string> endpoints_ COHORT_GUARDED_BY(endpoints_mu_);
  Mutex mu_;
  bool failed_ COHORT_GUARDED_BY(mu_) = false;
  FailureCause cause_{host_, kNcclCauseLimit};
};

}  // namespace cohort::collective
