// Membership: records which processes of a group have joined, left or are lost, and whether the group has failed.
// group.h defines these states. Internal to collective/.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/transport.h"
#include "cohort/collective/group.h"
#include "cohort/collective/member_list.h"
#include "cohort/collective/messages.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

// The record of one group at one process. GroupCore owns it, reports events to it, and acts on its answers. It sends no
// messages. The only functions of others that it calls are `reach` (AwaitAll) and the lookup (SetLastHeardLookup).
// Thread-safe.
class Membership {
 public:
  using Clock = std::chrono::steady_clock;

  // Throws what MemberList throws.
  Membership(const GroupOptions& options, const std::string& own_task);

  const MemberList& members() const { return members_; }
  GroupRef ref() const { return {key_, generation_}; }
  // Returns "group 1, generation 2".
  std::string Describe() const;
  // Returns the name of this process's host for JoinMessage.
  const std::string& own_host() const { return own_host_; }

  // Sets a lookup. For a lost task, the lookup returns the time at which the task's last byte came. For a task that is
  // connected or was never seen, it returns nullopt. Requires: no other thread uses this object yet.
  using LastHeardLookup = std::function<std::optional<Clock::time_point>(const std::string& task)>;
  void SetLastHeardLookup(LastHeardLookup lookup) { last_heard_ = std::move(lookup); }

  // Returns whether our join was sent to `process`.
  bool HasOurJoin(int process) const COHORT_EXCLUDES(mu_);
  // Records that `process` has joined. Returns false if it had joined before, which means that it was restarted.
  // Requires: HasOurJoin.
  bool RecordJoin(int process, const JoinMessage& join) COHORT_EXCLUDES(mu_);
  // Records that `connection` is the connection to `process`, and that our join is sent over it.
  void SetConnection(int process, const std::shared_ptr<Connection>& connection) COHORT_EXCLUDES(mu_);
  // Waits until all processes have joined. Calls `reach` on this thread before each look at them. `reach` sends our
  // join to processes, and returns true if it has reached all that it has to; if not, it is called again after a pause.
  // Logs the missing processes every `log_interval`. If a missing process was connected and is lost, generation 1 waits
  // until 3 s after its last byte. Later generations wait until `deadline`, because the process may be restarting.
  // Returns ok, or the UnavailableError that names the lost processes. Throws the group's failure, the errors of
  // `reach`, or DeadlineExceededError.
  Status AwaitAll(const std::function<bool()>& reach, Clock::time_point deadline, Clock::duration log_interval)
      COHORT_EXCLUDES(mu_);
  // Returns the tasks of the processes that have not joined, or nothing if the group has formed.
  std::vector<std::string> MissingTasks() const COHORT_EXCLUDES(mu_);
  // Lets AwaitAll call `reach` now: a process of a member's task has sent a message, perhaps for another group.
  void Wake() { changed_.NotifyAll(); }
  // Returns the number of the process (TaskIdentity::incarnation) with which the group has formed for `task`. Returns
  // nullopt if the group has not formed, or if the task is this one or no member.
  std::optional<uint64_t> FormedWith(const std::string& task) const COHORT_EXCLUDES(mu_);
  // Returns the addresses in each process's join message. Index: process; empty for this process.
  std::vector<std::vector<std::string>> Endpoints() const COHORT_EXCLUDES(mu_);

  // Returns the connections to all processes that have one.
  std::vector<std::shared_ptr<Connection>> Connections() const COHORT_EXCLUDES(mu_);
  // Returns the connection to `process`, or null if there is none.
  std::shared_ptr<Connection> ConnectionTo(int process) const COHORT_EXCLUDES(mu_);

  // Records a leave message. Returns the process that has now left, or -1 if it had left before or is not in this
  // group.
  int RecordLeave(const std::shared_ptr<Connection>& connection) COHORT_EXCLUDES(mu_);
  // Records a farewell message. Wakes AwaitFarewells.
  void RecordFarewell(const std::shared_ptr<Connection>& connection) COHORT_EXCLUDES(mu_);
  // Waits until each peer that has a connection has sent its farewell or is gone, or until the group fails, but at most
  // 5 s.
  void AwaitFarewells() COHORT_EXCLUDES(mu_);
  // Records that a connection has closed. Returns its process, or -1 if it is not a connection of this group. `lost` is
  // true if the process has not left.
  struct Closed {
    int process = -1;
    bool lost = false;
  };
  Closed RecordClosed(const std::shared_ptr<Connection>& connection) COHORT_EXCLUDES(mu_);
  // Records that nothing more will come from `process`. Returns false if that was known; the first reason stays.
  bool SetGone(int process, const Status& why) COHORT_EXCLUDES(mu_);
  // Returns why a member's process is gone, or ok if it is not. Takes no lock if no process is gone.
  Status WhyGone(int rank) const COHORT_EXCLUDES(mu_);
  // Returns descriptions of the processes for which the lookup returns a time, except this process and `except`.
  std::vector<std::string> LostProcesses(int except) const;

  // Records that the group has failed, and wakes functions that wait. Returns false if it had failed before; the first
  // reason stays.
  bool SetFailed(const Status& why) COHORT_EXCLUDES(mu_);
  // Returns why the group has failed, or ok if it has not.
  Status status() const COHORT_EXCLUDES(mu_);

 private:
  struct Peer {
    std::shared_ptr<Connection> connection;
    bool has_our_join = false;
    bool joined = false;
    bool left = false;
    bool farewell = false;
    std::string host;
    std::vector<std::string> endpoints;
    Status gone;  // why nothing more will come from it
  };
  // The processes that have not joined, and those of them that are lost.
  struct Missing {
    std::vector<std::string> all, lost;
    Clock::time_point given_up = Clock::time_point::max();  // the earliest end of a wait for one of `lost`
  };

  int FindProcess(const std::shared_ptr<Connection>& connection) const COHORT_REQUIRES(mu_);  // -1: none
  Missing FindMissing() const COHORT_REQUIRES(mu_);
  void SetHosts() COHORT_REQUIRES(mu_);

  const int64_t key_;
  const int64_t generation_;
  const std::string own_host_;
  MemberList members_;
  LastHeardLookup last_heard_;  // empty in a local group

  mutable Mutex mu_;
  CondVar changed_;
  std::vector<Peer> peers_ COHORT_GUARDED_BY(mu_);  // index: process
  bool formed_ COHORT_GUARDED_BY(mu_) = false;
  Status failed_ COHORT_GUARDED_BY(mu_);
  std::atomic<bool> any_gone_{false};
};

}  // namespace cohort::collective
