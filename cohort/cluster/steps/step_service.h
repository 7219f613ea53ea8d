// StepService: the step protocol of one process. It serves the task of this process, if there is one, to masters in
// other processes, and gives masters in this process their clients of other tasks.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/cluster/node_service.h"
#include "cohort/cluster/steps/lease_table.h"
#include "cohort/cluster/steps/protocol.h"
#include "cohort/cluster/steps/session_work.h"
#include "cohort/core/mutex.h"
#include "cohort/runtime/local_task.h"

namespace cohort {

class RemoteTask;

// Owned by the node, whose peer table and chief watch it uses. Thread-safe. Ends in two steps: OnStop while the
// connections are still there, End when they have closed.
class StepService final : public NodeService {
 public:
  // `devices` is null for a client, which runs no task. `reconnect_limit`: see LeaseTable.
  StepService(ClusterNode& node, std::shared_ptr<const DeviceSet> devices, std::shared_ptr<TaskResources> resources,
              std::chrono::milliseconds reconnect_limit);
  ~StepService() override;

  // Null for a client.
  const std::shared_ptr<LocalTask>& local_task() const { return local_; }
  // Returns a client for the steps of `task`, over a live connection if that is another process. Waits and throws as
  // PeerTable::Reach does; also throws DeadlineExceededError if the task does not list its devices in time.
  std::shared_ptr<TaskClient> ClientFor(const DeviceName& task, std::chrono::steady_clock::time_point deadline);
  // Tells every other task of the cluster that can be reached that training is done, and waits a few seconds for the
  // answers. A task that ends meanwhile needs no answer. Warns of a task that lives and does not answer. Does not
  // throw.
  void TellTrainingDone();

  // From the peer table, under its lock.
  void OnPeerConnected(const TaskIdentity& peer);
  void OnPeerGone(const TaskIdentity& peer);
  // Cancels the steps of all executables that have a partition on `task`.
  void OnTaskLost(const std::string& task, const Status& why);

  void OnMessage(const std::shared_ptr<Connection>& connection, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) override;
  void OnStop(const Status& why) override;
  // Waits for what is under way for sessions, and fails the steps that masters of this process still wait for.
  // Requires: OnStop has returned, and no connection is left.
  void End(const Status& why);

 private:
  // Messages to a master in this process. Returns false for another kind.
  bool HandleReply(const std::shared_ptr<Connection>& connection, Message& message);
  // Messages to the task of this process.
  void HandleRequest(const std::shared_ptr<Connection>& connection, Message message);
  void HandleRegister(const std::shared_ptr<Connection>& connection, const Message& message);
  // On a thread that may wait.
  void Register(const std::shared_ptr<Connection>& connection, RegisterRequest request);
  void HandleStart(const std::shared_ptr<Connection>& connection, Message message);
  void HandleValues(const Message& message);
  void HandleTrainingDone(const std::shared_ptr<Connection>& connection, const Message& message);
  // Connects to every task that the executable's steps send values to.
  std::unique_ptr<ValueSender> MakeSender(const ExecutableSpec& spec);
  // An error if the lease of `session` has ended.
  Status WhyToGiveUp(uint64_t session);
  void TellTrainingDoneTo(const DeviceName& task);
  // Frees what an ended lease held, and then forgets the lease.
  void FreeSession(uint64_t session);
  // Returns the one RemoteTask of a connection; all sessions of this process share it.
  std::shared_ptr<RemoteTask> RemoteTaskOn(const std::shared_ptr<Connection>& connection) COHORT_EXCLUDES(mu_);

  ClusterNode& node_;
  std::shared_ptr<LocalTask> local_;
  LeaseTable leases_;
  std::unique_ptr<SessionWork> session_work_;
  Mutex mu_;
  std::map<const Connection*, std::shared_ptr<RemoteTask>> remote_tasks_ COHORT_GUARDED_BY(mu_);
  bool ended_ COHORT_GUARDED_BY(mu_) = false;
};

}  // namespace cohort
