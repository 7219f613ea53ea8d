// TurnOrder: makes all members run the collectives of a library in one order. Internal to the engines of such
// libraries.
//
// The calls of a library like Gloo or NCCL wait until all members have made the same call, in the same order, and the
// library does not check that the members' arguments agree. So each member tells rank 0 which collective it has begun:
// it "arrives". Rank 0 compares the signatures. When all members have arrived, it gives the collective a "turn". That
// is a number, which is counted for each lane. All members run the collectives of a lane in the order of their turns.
// So a missing or different member is named before the library is called, members may begin collectives in any order,
// and the library only waits while bytes move.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/engine.h"
#include "cohort/collective/turns/pending_arrivals.h"
#include "cohort/collective/turns/turn_call.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

// What a TurnOrder needs to know of its engine's lanes. A member has several lanes, each with connections of the
// library and a thread of its own.
struct TurnOptions {
  const char* library = "";    // its name, for messages
  int32_t first_sequence = 0;  // the order's messages have this sequence number and the next one
  size_t lanes = 1;            // of each member
  // Returns the lane of a collective.
  std::function<size_t(const CallSignature&)> lane_of;
  // Gives the call of the local member call->rank() to its lane.
  std::function<void(size_t lane, int64_t turn, std::shared_ptr<TurnCall> call)> run;
};

// The calls of one process's members, and at rank 0 the arrivals of all members. An engine owns it, and passes on the
// events of CollectiveEngine. Thread-safe.
class TurnOrder {
 public:
  static constexpr int32_t kSequences = 2;

  TurnOrder(EngineHost& host, TurnOptions options);

  // The functions with the names of CollectiveEngine do what they do there.
  void Begin(CollectiveCall&& call) COHORT_EXCLUDES(mu_);
  // Throws DataLossError if the message is neither an arrival nor a turn.
  void Deliver(const DataMessage& data, const Tensor& tensor) COHORT_EXCLUDES(mu_);
  void OnPeerGone() COHORT_EXCLUDES(mu_);
  void OnPeerLeft(int process) COHORT_EXCLUDES(mu_);
  void OnSchedulesAgreed() COHORT_EXCLUDES(mu_);
  void AppendUnfinished(std::vector<std::shared_ptr<UnfinishedCollective>>& all) COHORT_EXCLUDES(mu_);
  // Returns true if no call runs or waits here. Calls that have ended here may still run at peers: the library's
  // connections may carry bytes that a peer has not read. If this process closed the connections now, these bytes would
  // be lost.
  bool NeedsFarewells() const COHORT_EXCLUDES(mu_);

  // Call it when the connections are made. Until then no farewell is sent.
  void OnConnected() { DecrementRunning(); }
  // A lane calls it when a call that it has run is over. Ends the call.
  void Finish(const std::shared_ptr<TurnCall>& call, const Status& status, Tensor result) COHORT_EXCLUDES(mu_);
  // For a call that got its turn and that the library does not run. Moves it to `*taken`; the caller ends it, and then
  // calls OnTakenEnded. Returns false if the call has ended.
  bool Take(const std::shared_ptr<TurnCall>& call, CollectiveCall* taken) COHORT_EXCLUDES(mu_);
  void OnTakenEnded() { DecrementRunning(); }
  // Refuses all calls from now on. Returns false if it was called before.
  bool SetFailed(const Status& why) COHORT_EXCLUDES(mu_);
  // Ends all calls that do not run. Requires: SetFailed was called, and the lanes take no calls any more.
  void EndCalls() COHORT_EXCLUDES(mu_);

 private:
  using Key = std::pair<int, CallId>;  // rank

  bool is_leader() const { return host_.members().process_of(0) == host_.members().own_process(); }
  int32_t arrival_sequence() const { return options_.first_sequence; }
  int32_t turn_sequence() const { return options_.first_sequence + 1; }
  // At rank 0: records that the member `from` has begun a collective.
  void RecordArrival(int from, const std::string& name, const CallId& id, const CallSignature& signature,
                     uint64_t schedule_fingerprint) COHORT_EXCLUDES(mu_);
  // At rank 0: gives the collective its turn if all members' schedules agree with the schedule of rank 0. Otherwise
  // OnSchedulesAgreed tries again.
  void GiveTurnIfAgreed(const CallId& id, const PendingArrivals& arrivals) COHORT_EXCLUDES(mu_);
  // Hands the call of the local member `rank` to its lane.
  void TakeTurn(int rank, const CallId& id, const CallSignature& signature, int64_t turn) COHORT_EXCLUDES(mu_);
  // Decrements running_. If it is 0 then, sends the farewells that wait for that.
  void DecrementRunning() COHORT_EXCLUDES(mu_);

  EngineHost& host_;
  const TurnOptions options_;

  mutable Mutex mu_;
  Status failed_ COHORT_GUARDED_BY(mu_);
  std::map<Key, std::shared_ptr<TurnCall>> calls_ COHORT_GUARDED_BY(mu_);               // that have not ended
  std::map<CallId, std::shared_ptr<PendingArrivals>> arrivals_ COHORT_GUARDED_BY(mu_);  // at rank 0: without a turn yet
  std::vector<int64_t> turns_ COHORT_GUARDED_BY(mu_);  // at rank 0: number of turns given, by lane
  int running_ COHORT_GUARDED_BY(mu_) = 1;             // calls with a turn that have not ended, and the connecting
  std::vector<int> left_ COHORT_GUARDED_BY(mu_);       // processes that wait for a farewell
};

}  // namespace cohort::collective
