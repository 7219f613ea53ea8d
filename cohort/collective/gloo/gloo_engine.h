// GlooEngine: runs the collectives of a group by Gloo. Internal to collective/.
//
// Gloo's calls block. A TurnOrder makes all members make them in the same order.
//
// The group's own connections detect lost members. When the group fails, it also closes Gloo's connections, so no Gloo
// call stays blocked.
//
// A member has several lanes, each with connections and a thread of its own. The size of a collective decides its lane:
// Gloo's large messages stall for up to half a second on connections that have only carried small ones.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/engine.h"
#include "cohort/collective/gloo/gloo_lane.h"
#include "cohort/collective/turns/failure_cause.h"
#include "cohort/collective/turns/turn_order.h"

namespace cohort::collective {

// Serves groups of several processes that ask for kGloo. It owns a few lanes for each local member: each has a thread
// and connections of Gloo, and serves tensors of certain sizes. The group owns the engine. Thread-safe.
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
  void Begin(CollectiveCall&& call) override { order_.Begin(std::move(call)); }
  void Deliver(const DataMessage& data, Tensor tensor, bool may_compute_inline) override;
  void OnPeerGone() override;
  void OnPeerLeft(int process) override { order_.OnPeerLeft(process); }
  void OnSchedulesAgreed() override { order_.OnSchedulesAgreed(); }
  void AppendUnfinished(std::vector<std::shared_ptr<UnfinishedCollective>>& all) override;
  bool NeedsFarewells() const override { return order_.NeedsFarewells(); }
  void Fail(const Status& why) override;
  bool IsOwnThread() const override;
  void Join() override;

 private:
  // Returns why the group has failed. `seen` is an error that Gloo has reported. If it is kUnavailable, a connection
  // has broken, and Gloo does not know why. Then waits up to 5 s until the group has failed for the real reason. If the
  // group has not failed, fails it with `seen`. Call it from a lane's thread or from Connect.
  Status Explain(const Status& seen);

  EngineHost& host_;
  TurnOrder order_;
  std::vector<std::unique_ptr<GlooLane>> lanes_;  // of the local members; order: rank, then lane

  FailureCause cause_{host_, std::chrono::seconds(5)};  // by the silence limit, the loss of a member is known then
};

}  // namespace cohort::collective
