// GlooCalls: the collectives of a group that runs them by Gloo. Internal to collective/.
//
// Gloo's calls block, have to be made in one order by all members, and trust that all bring the same. So each member
// tells rank 0 what it has begun; rank 0 compares, and when all have come it gives the collective a turn: a number in
// the order that all keep. Who is missing and what differs is thus known by name before Gloo is asked, members may
// begin collectives in any order, and Gloo waits only while bytes move. Members and their lost ones are watched by the
// group's own connections; a failure of the group closes Gloo's, so that no call of Gloo's outlasts it.
//
// A member has several lanes, each with connections of its own, and a collective goes by its size to one of them:
// Gloo's large messages stall for up to half a second on connections that have only seen small ones.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/gloo_lane.h"
#include "cohort/collective/messages.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

class GroupCore;

// Thread-safe.
class GlooCalls {
 public:
  // Of the core's local members; listens on `host`. Throws what MakeGlooMeshes throws.
  GlooCalls(GroupCore& core, const std::string& host);
  ~GlooCalls();  // after Join

  // Each local member's, for JoinMessage: by rank, and of a rank by lane.
  std::vector<std::string> Endpoints() const;
  // How many a process with so many members sends.
  static size_t NumEndpoints(size_t members);
  // `endpoints`: by process. Returns when all members are connected to all others; throws what the group fails for.
  void Connect(const std::vector<std::vector<std::string>>& endpoints);

  void Begin(int rank, const CallId& id, PlanRun::Job job) EXCLUDES(mu_);
  // What a member sends to rank 0, and rank 0 to a member.
  void OnData(const DataMessage& data, const Tensor& tensor) EXCLUDES(mu_);
  // Fails the group where something cannot go on without a member that is gone.
  void CheckPeers() EXCLUDES(mu_);
  // Like LocalMember::CheckSchedules.
  void CheckSchedules() EXCLUDES(mu_);
  void AddUnderWay(std::vector<std::shared_ptr<Pending>>& all) EXCLUDES(mu_);
  // Whether no collective is under way here.
  bool idle() const EXCLUDES(mu_);
  // `process` has left: tells it when nothing is under way here any more that it has taken part in.
  void OnLeft(int process) EXCLUDES(mu_);
  // The group has failed: ends all calls, breaks all connections.
  void Stop(const Status& why) EXCLUDES(mu_);
  bool IsOwnThread() const;
  // After Stop.
  void Join();

 private:
  class Gathering;
  using Key = std::pair<int, CallId>;  // rank

  bool leads() const;
  void Gather(int from, const std::string& name, const CallId& id, const Signature& signature, uint64_t schedule)
      EXCLUDES(mu_);
  // Gives a turn where the schedules of all agree with that of rank 0; else CheckSchedules comes back to it.
  void Proceed(const CallId& id, const Gathering& gathering) EXCLUDES(mu_);
  void GiveTurn(int rank, const CallId& id, const Signature& signature, int64_t turn) EXCLUDES(mu_);
  // On a lane's thread, or of Connect. What Gloo has seen, or rather why.
  Status Explain(const Status& seen) EXCLUDES(mu_);
  void Finish(const std::shared_ptr<GlooCall>& call, const Status& status, Tensor result) EXCLUDES(mu_);
  // One thing less is under way.
  void OneLess() EXCLUDES(mu_);

  GroupCore& core_;
  std::vector<std::unique_ptr<GlooLane>> lanes_;  // of the local members, of each all

  mutable Mutex mu_;
  CondVar changed_;
  Status failed_ GUARDED_BY(mu_);
  std::map<Key, std::shared_ptr<GlooCall>> calls_ GUARDED_BY(mu_);           // which have not ended
  std::map<CallId, std::shared_ptr<Gathering>> gatherings_ GUARDED_BY(mu_);  // at rank 0
  std::vector<int64_t> turns_ GUARDED_BY(mu_);                               // given by rank 0, by lane
  int under_way_ GUARDED_BY(mu_) = 1;                                        // calls with a turn, and connecting
  int explained_ GUARDED_BY(mu_) = 0;      // errors of Gloo's that wait for their cause
  std::vector<int> left_ GUARDED_BY(mu_);  // processes that wait for a farewell
};

}  // namespace cohort::collective
