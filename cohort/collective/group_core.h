// GroupCore: the shared part of a Group - members, connections, what has failed. Internal to collective/.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cluster/transport.h"
#include "cohort/collective/gloo_calls.h"
#include "cohort/collective/group.h"
#include "cohort/collective/local_member.h"
#include "cohort/collective/meeting.h"
#include "cohort/collective/plan_run.h"
#include "cohort/collective/schedule_book.h"
#include "cohort/core/mutex.h"
#include "cohort/core/thread_pool.h"

namespace cohort::collective {

// Thread-safe.
class GroupCore final : public RunHost, public std::enable_shared_from_this<GroupCore> {
 public:
  // `own_task`: "/job:worker/replica:0/task:0"; "" where all members are of this process. Throws InvalidArgumentError
  // for members that are no devices or stand twice, or when none is of this process.
  GroupCore(const GroupOptions& options, const std::string& own_task);
  ~GroupCore() override;

  const GroupOptions& options() const { return options_; }
  GroupRef ref() const { return {options_.key, options_.generation}; }
  const std::vector<int>& local_ranks() const { return local_ranks_; }
  // The process of every rank, by number, in the order in which they first appear; the same of hosts, once AwaitAll has
  // returned (hosts are read by those only who can call collectives by then).
  const std::vector<Location>& locations() const { return locations_; }
  int process_of(int rank) const { return locations_[static_cast<size_t>(rank)].process; }
  const std::vector<std::string>& tasks() const { return tasks_; }  // by number of the process
  int own_process() const { return own_process_; }
  const std::string& device(int rank) const { return names_[static_cast<size_t>(rank)]; }
  const std::shared_ptr<LocalMember>& member(size_t local) const { return members_[local]; }
  JoinMessage OwnJoin() const;

  // From the registry. A peer that joins: it is answered where it has not been told yet; a group that has failed
  // answers with the reason.
  void OnJoin(const std::shared_ptr<Connection>& connection, const JoinMessage& join);
  // `here`: see PlanRun::Deliver.
  void OnData(const DataMessage& data, Tensor tensor, bool here);
  void OnAbort(const AbortMessage& abort);
  void OnLeave(const std::shared_ptr<Connection>& connection, const LeaveMessage& leave);
  void OnFarewell(const std::shared_ptr<Connection>& connection);
  void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why);
  // Tells a process that this one joins. `connection` then is the one for it.
  void SendJoin(int process, const std::shared_ptr<Connection>& connection);
  // Before the group can fail: where its failure is noted for those who join later.
  void TellFailure(std::shared_ptr<class FailedGroups> failures) { failures_ = std::move(failures); }
  // Before it is told of connections that close: when a task that is gone was last heard of; nothing where it is there,
  // or was never seen.
  using Gone = std::function<std::optional<std::chrono::steady_clock::time_point>(const std::string& task)>;
  void KnowGone(Gone gone) { gone_ = std::move(gone); }
  // `reach` tells those processes of this one's join that it can reach, until it says that all have been told. Returns
  // when all have joined; says every `say_every` who has not. In the first generation who is gone is not waited for
  // long; later ones are there for members that are started again. Throws what has failed, what `reach` throws,
  // UnavailableError that names those who are gone, DeadlineExceededError.
  void AwaitAll(const std::function<bool()>& reach, std::chrono::steady_clock::time_point deadline,
                std::chrono::steady_clock::duration say_every);
  // Where the group runs by Gloo and has members elsewhere: listens for them on `host` (before the first join is sent
  // or heard); connects to them (when all have joined). Throw what GlooCalls throws.
  void OpenGloo(const std::string& host);
  void ConnectGloo();
  GlooCalls* gloo() const { return gloo_.get(); }  // null where Gloo does nothing
  // Of the local members.
  ScheduleBook& schedules() { return schedules_; }
  void SendSchedule(const ScheduleMessage& message);
  void OnSchedule(const ScheduleMessage& message);
  // Two schedules that seemed to differ do not: what has waited for that goes on.
  void OnSchedulesAgree();
  // To a process that has left.
  void SendFarewell(int process);

  Status status() const EXCLUDES(mu_);
  // When all that Watch and the log need is there. At most once.
  void StartWatching();
  // What has begun is watched where there is a timeout, which is so much longer for it.
  void Watch(const std::shared_ptr<Pending>& run, std::chrono::milliseconds longer = {});
  // Where the members' calls meet, in a group of one process.
  MeetingPlace& meetings() { return meetings_; }
  // Tells the others that this process takes no further part, and ends its runs.
  void Leave(const Status& why);
  // Leaves and ends all threads; on one of them it returns before they have ended. The core is in a shared_ptr.
  void Close(const Status& why);

  int size() const override { return static_cast<int>(names_.size()); }
  std::string DescribeRank(int rank) const override;
  void Post(int from, int to, const CallId& call, int32_t sequence, const Signature& signature, uint64_t schedule,
            Tensor tensor) override;
  bool Agree(int rank, uint64_t ours, int other, uint64_t theirs) override {
    return schedules_.Agree(rank, ours, other, theirs);
  }
  void Schedule(std::function<void()> work) override;
  void Fail(const Status& why) override EXCLUDES(mu_);
  Status WhyGone(int rank) const override EXCLUDES(mu_);
  void Retire(int rank, const CallId& call) override;

 private:
  struct Peer {
    std::shared_ptr<Connection> connection;
    bool told = false;    // has our join
    bool joined = false;  // we have its join
    bool left = false;    // its leave has come
    bool farewell = false;
    std::string host;
    std::vector<std::string> gloo_endpoints;
    Status gone;  // nothing more will come from it
  };
  struct Watched {
    std::chrono::steady_clock::time_point deadline;
    std::weak_ptr<Pending> run;
  };

  std::string DescribeProcess(int process) const;
  // Of the others except `but`.
  std::vector<std::string> WhoIsGone(int but) const;
  int FindProcess(const std::shared_ptr<Connection>& connection) const REQUIRES(mu_);  // -1: none
  void SetGone(int process, const Status& why) EXCLUDES(mu_);
  // Sets failed_, ends all runs. False where it had failed before.
  bool FailHere(const Status& why) EXCLUDES(mu_);
  std::vector<std::shared_ptr<Connection>> Connections() const EXCLUDES(mu_);
  std::shared_ptr<Connection> ConnectionTo(int process) const EXCLUDES(mu_);  // null where there is none
  // Until all others have nothing under way that this process has taken part in; seconds at most.
  void AwaitFarewells() EXCLUDES(mu_);
  // "", or how `join` differs from ours.
  std::string Difference(const JoinMessage& join) const;
  // When all have joined: from the same facts at every member.
  void LearnHosts() REQUIRES(mu_);
  void WatchLoop();
  // Fails the group where the run has not ended.
  void CheckTimeout(const std::shared_ptr<Pending>& run) EXCLUDES(mu_);
  std::vector<std::shared_ptr<Pending>> UnderWay();

  const GroupOptions options_;
  std::vector<std::string> names_;  // of the members' devices
  const std::string host_;
  std::vector<Location> locations_;
  std::vector<std::string> tasks_;
  int own_process_ = 0;
  std::vector<int> local_ranks_;
  std::vector<int> local_index_;  // by rank; -1 elsewhere
  std::vector<std::shared_ptr<LocalMember>> members_;
  MeetingPlace meetings_{*this};
  ScheduleBook schedules_{*this};
  std::unique_ptr<GlooCalls> gloo_;

  std::shared_ptr<FailedGroups> failures_;  // null in a local group
  Gone gone_;                               // likewise

  mutable Mutex mu_;
  CondVar changed_;
  std::vector<Peer> peers_ GUARDED_BY(mu_);  // by process
  Status failed_ GUARDED_BY(mu_);
  std::deque<Watched> watched_ GUARDED_BY(mu_);
  bool closed_ GUARDED_BY(mu_) = false;

  std::atomic<bool> any_gone_{false};
  std::unique_ptr<ThreadPool> workers_ GUARDED_BY(mu_);  // null once closed
  std::thread watcher_;
};

}  // namespace cohort::collective
