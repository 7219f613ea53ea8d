// GlooEngine: runs the collectives of a group by Gloo. Internal to collective/.
//
// Gloo's calls block. All members have to make them in the same order, and Gloo does not check that the members'
// arguments agree. So each member tells rank 0 which collective it has begun: it "arrives". Rank 0 compares the
// signatures. When all members have arrived, it gives the collective a "turn". That is a number, which is counted for
// each lane (see below). All members run the collectives of a lane in the order of their turns. So a missing or
// different member is named before Gloo is called, members may begin collectives in any order, and Gloo only waits
// while bytes move.
//
// The group's own connections detect lost members. When the group fails, it also closes Gloo's connections, so no Gloo
// call stays blocked.
//
// A member has several lanes, each with connections and a thread of its own. The size of a collective decides its lane:
// Gloo's large messages stall for up to half a second on connections that have only carried small ones.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/engine.h"
#include "cohort/collective/gloo/gloo_lane.h"
#include "cohort/collective/gloo/pending_arrivals.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

// Serves groups of several processes that ask for kGloo. It owns a few lanes for each local member: each has a thread
// and connections of Gloo, and serves tensors of certain sizes. Rank 0 puts the collectives in order. The group owns
// the engine. Thread-safe.
class GlooEngine final : public CollectiveEngine {
 public:
  // Listens on `own_address`. Throws what MakeGlooMeshes throws.
  GlooEngine(EngineHost& host, const std::string& own_address);
  // Requires: Join has returned, or Begin was never called.
  ~GlooEngine() override;

  // Returns the addresses of all local members' lanes. Order: rank, then lane.
  std::vector<std::string> Endpoints() const override;
  size_t NumEndpointsOf(int process) const override;
  void Connect(const std::vector<std::vector<std::string>>& endpoints) override;

  Algorithm AlgorithmOf(DType, int64_t) const override { return Algorithm::kGloo; }
  void Begin(CollectiveCall&& call) override COHORT_EXCLUDES(mu_);
  // Handles a message between a member and rank 0: an arrival or a turn.
  void Deliver(const DataMessage& data, Tensor tensor, bool may_compute_inline) override COHORT_EXCLUDES(mu_);
  void OnPeerGone() override COHORT_EXCLUDES(mu_);
  void OnPeerLeft(int process) override COHORT_EXCLUDES(mu_);
  void OnSchedulesAgreed() override COHORT_EXCLUDES(mu_);
  void AppendUnfinished(std::vector<std::shared_ptr<UnfinishedCollective>>& all) override COHORT_EXCLUDES(mu_);
  // Returns true if no call runs or waits here. Calls that have ended here may still run at peers: Gloo's connections
  // may carry bytes that a peer has not read. If this process closed the connections now, these bytes would be lost.
  bool NeedsFarewells() const override COHORT_EXCLUDES(mu_);
  void Fail(const Status& why) override COHORT_EXCLUDES(mu_);
  bool IsOwnThread() const override;
  void Join() override;

 private:
  using Key = std::pair<int, CallId>;  // rank

  bool is_leader() const { return host_.members().process_of(0) == host_.members().own_process(); }
  // At rank 0: records that the member `from` has begun a collective.
  void RecordArrival(int from, const std::string& name, const CallId& id, const CallSignature& signature,
                     uint64_t schedule_fingerprint) COHORT_EXCLUDES(mu_);
  // At rank 0: gives the collective its turn if all members' schedules agree with the schedule of rank 0. Otherwise
  // OnSchedulesAgreed tries again.
  void GiveTurnIfAgreed(const CallId& id, const PendingArrivals& arrivals) COHORT_EXCLUDES(mu_);
  // Hands the call of the local member `rank` to its lane.
  void TakeTurn(int rank, const CallId& id, const CallSignature& signature, int64_t turn) COHORT_EXCLUDES(mu_);
  // Returns why the group has failed. `seen` is an error that Gloo has reported. If it is kUnavailable, a connection
  // has broken, and Gloo does not know why. Then waits up to 5 s until the group has failed for the real reason. If the
  // group has not failed, fails it with `seen`. Call it from a lane's thread or from Connect.
  Status Explain(const Status& seen) COHORT_EXCLUDES(mu_);
  void Finish(const std::shared_ptr<GlooCall>& call, const Status& status, Tensor result) COHORT_EXCLUDES(mu_);
  // Decrements running_. If it is 0 then, sends the farewells that wait for that.
  void DecrementRunning() COHORT_EXCLUDES(mu_);

  EngineHost& host_;
  std::vector<std::unique_ptr<GlooLane>> lanes_;  // of the local members; order: rank, then lane

  mutable Mutex mu_;
  CondVar changed_;
  Status failed_ COHORT_GUARDED_BY(mu_);
  std::map<Key, std::shared_ptr<GlooCall>> calls_ COHORT_GUARDED_BY(mu_);               // that have not ended
  std::map<CallId, std::shared_ptr<PendingArrivals>> arrivals_ COHORT_GUARDED_BY(mu_);  // at rank 0: without a turn yet
  std::vector<int64_t> turns_ COHORT_GUARDED_BY(mu_);  // at rank 0: number of turns given, by lane
  int running_ COHORT_GUARDED_BY(mu_) = 1;             // calls with a turn that have not ended, and Connect
  int explaining_ COHORT_GUARDED_BY(mu_) = 0;          // threads in Explain
  std::vector<int> left_ COHORT_GUARDED_BY(mu_);       // processes that wait for a farewell
};

}  // namespace cohort::collective
