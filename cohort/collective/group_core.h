// GroupCore: one process's part of a group. It connects the membership, the watchdog and the engine. Internal to
// collective/.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/cluster/status/task_state.h"
#include "cohort/cluster/transport.h"
#include "cohort/collective/engine.h"
#include "cohort/collective/group.h"
#include "cohort/collective/hang_watch.h"
#include "cohort/collective/membership.h"
#include "cohort/collective/schedule_agreement.h"
#include "cohort/collective/watchdog.h"
#include "cohort/core/mutex.h"
#include "cohort/core/thread_pool.h"

namespace cohort::collective {

class GroupFailures;
class MemberCommunicator;

// One process's part of a group. The Group handle owns it through shared_ptr. Communicators and the GroupDirectory
// refer to it weakly; a call that is under way keeps it alive. Thread-safe. End it with Close, which the Group's
// destructor calls.
class GroupCore final : public EngineHost, public std::enable_shared_from_this<GroupCore> {
 public:
  // `own_task` and `own_address` name this process, for example "/job:worker/replica:0/task:0" and a host name or
  // address. Both are "" if all members are in this process. `devices` are those of the task. Throws
  // InvalidArgumentError if a device is a member twice or if this process has no member. Throws what MakeEngine throws.
  GroupCore(const GroupOptions& options, const std::string& own_task, const std::string& own_address,
            std::weak_ptr<const DeviceSet> devices = {}, bool only_protected = false);
  ~GroupCore() override;

  Membership& membership() { return membership_; }
  CollectiveEngine& engine() { return *engine_; }
  ScheduleAgreement& schedules() { return schedules_; }
  const std::shared_ptr<MemberCommunicator>& communicator(size_t local) const { return communicators_[local]; }

  // Makes the communicators and starts the watchdog. Call once, when the core is in a shared_ptr.
  void Start();
  // Sends our join message to `process`. From now on, messages to `process` use `connection`.
  void SendJoin(int process, const std::shared_ptr<Connection>& connection);
  // Waits until all processes have joined and the engine is connected. For `reach` see Membership::AwaitAll. If
  // AwaitAll returns that processes are lost, fails the group with this error and throws it. Throws also what AwaitAll
  // and CollectiveEngine::Connect throw.
  void AwaitFormed(const std::function<bool()>& reach, std::chrono::steady_clock::time_point deadline,
                   std::chrono::steady_clock::duration log_interval);
  // Sets the function that asks a task what it does. Its result is for the error of a collective without progress. It
  // may take some seconds, and does not throw. For `node` and `held_by_program` see HangWatch::SetNode.
  using AskTask = std::function<std::string(const std::string& task)>;
  void SetQuestions(AskTask ask, HangWatch::Node node, bool held_by_program) COHORT_EXCLUDES(mu_);
  // Adds the collectives that have begun here and not ended.
  void AppendWaits(std::vector<CollectiveWait>* waits);
  // Sets the record of this process's failed groups. If this group fails, it adds its failure there. Call it before the
  // group can fail.
  void SetFailures(std::shared_ptr<GroupFailures> failures) { failures_ = std::move(failures); }

  // The directory calls these functions when a message has come or a connection has closed.
  void OnJoin(const std::shared_ptr<Connection>& connection, const JoinMessage& join);
  void OnData(const DataMessage& data, Tensor tensor, bool may_compute_inline);
  void OnLeave(const std::shared_ptr<Connection>& connection, const LeaveMessage& leave);
  void OnSchedule(const ScheduleMessage& message);
  void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why);

  // Records that the program knows that the group has failed, or has left the group. Answers the processes that have
  // joined again since.
  void OnProgramTold() COHORT_EXCLUDES(mu_);

  // Sends our schedule, or the answer that schedules agree, to the process of `message.to`.
  void SendSchedule(const ScheduleMessage& message);
  // Leaves the group. If the group has not failed, sends a leave message to the peers and, if the engine needs
  // farewells, waits for them for at most 5 s. Then fails the group in this process with `why`.
  void Leave(const Status& why);
  // Calls Leave, and waits until all threads of the group have ended. If the caller is such a thread, a new thread
  // waits for them instead. Later calls do nothing.
  void Close(const Status& why) COHORT_EXCLUDES(mu_);

  const GroupOptions& options() const override { return options_; }
  const MemberList& members() const override { return membership_.members(); }
  Status status() const override { return membership_.status(); }
  std::shared_ptr<Device> device(int rank) const override;
  Status WhyGone(int rank) const override { return membership_.WhyGone(rank); }
  void Fail(const Status& why) override;

 private:
  // Engines call these functions, through EngineHost.
  void Post(DataMessage data, Tensor tensor) override;
  void RunOnWorker(std::function<void()> work) override COHORT_EXCLUDES(mu_);
  bool SchedulesAgree(int rank, uint64_t ours, int other, uint64_t theirs) override {
    return schedules_.Agree(rank, ours, other, theirs);
  }
  void Watch(const std::shared_ptr<UnfinishedCollective>& call, std::chrono::milliseconds longer) override {
    watchdog_.Watch(call, longer);
  }
  void SendFarewell(int process) override;

  JoinMessage OwnJoin() const;
  // Returns how the group in `join` differs from the group in this process, or "" if it does not. `process` is the
  // number of the sender, or -1 if the sender is not a member.
  std::string DescribeDifference(const JoinMessage& join, int process) const;
  void SetGone(int process, const Status& why);
  // Answers a join to a group that has failed. If the process was started again after the group had formed with it, it
  // gets its answer only when our program knows of the failure: until then it waits, as it waits for a program that
  // ends and is started again.
  void AnswerLate(const std::shared_ptr<Connection>& connection, const JoinMessage& join) COHORT_EXCLUDES(mu_);
  void LookForHangs();
  // Fails the group in this process without telling the peers. Returns false if it had failed before.
  bool FailHere(const Status& why);
  void OnTimeout(const UnfinishedCollective& call, const std::string& wait);
  void OnStuck(const UnfinishedCollective& call);

  const GroupOptions options_;
  const std::chrono::milliseconds progress_limit_;
  const std::weak_ptr<const DeviceSet> devices_;  // the task may own this group, and the devices own the task
  Membership membership_;
  HangWatch hang_watch_{membership_, progress_limit_};
  ScheduleAgreement schedules_{*this};
  Watchdog watchdog_;
  std::shared_ptr<GroupFailures> failures_;  // null in a local group
  std::unique_ptr<CollectiveEngine> engine_;
  std::vector<std::shared_ptr<MemberCommunicator>> communicators_;  // of the local ranks

  Mutex mu_;
  AskTask ask_task_ COHORT_GUARDED_BY(mu_);  // null in a local group
  bool closed_ COHORT_GUARDED_BY(mu_) = false;
  std::vector<std::shared_ptr<Connection>> late_joins_ COHORT_GUARDED_BY(mu_);  // see AnswerLate
  std::unique_ptr<ThreadPool> workers_ COHORT_GUARDED_BY(mu_);                  // null after Close
};

}  // namespace cohort::collective
