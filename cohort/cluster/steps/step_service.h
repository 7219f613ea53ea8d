// StepService: the step protocol of one process. It lets masters in other processes use the task of this process, if
// there is one. It gives masters in this process the clients of other tasks.
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
#include "cohort/core/thread_pool.h"
#include "cohort/runtime/local_task.h"

namespace cohort {

struct DialLimits;

class RemoteTask;

// Handles the messages of the step protocol, and makes RemoteTasks. A ClusterNode owns it; it uses the node's peer
// table and chief watch. Thread-safe. It ends in two steps: OnStop while the connections are still open, and End when
// they have closed.
class StepService final : public NodeService {
 public:
  // `devices` is null for a client, which runs no task. For `reconnect_limit` see LeaseTable.
  StepService(ClusterNode& node, std::shared_ptr<const DeviceSet> devices, std::shared_ptr<TaskResources> resources,
              std::chrono::milliseconds reconnect_limit);
  ~StepService() override;

  // Returns null if this process is a client.
  const std::shared_ptr<LocalTask>& local_task() const { return local_; }
  // Returns an object through which a master uses `task`: local_task() if it is this process's own task. Otherwise
  // connects to the task, and waits and throws as PeerTable::Reach does. Then asks the task for its devices. Throws
  // DeadlineExceededError if the task has not answered a minute after it was asked, or at the deadline of `limits` if
  // that is earlier.
  std::shared_ptr<TaskClient> ClientFor(const DeviceName& task, const DialLimits& limits);
  // Returns the leases of the sessions that other processes have on this task.
  std::vector<LeaseTable::Entry> Leases() { return leases_.List(); }
  // Connects to the task at `address`, whatever its name. Throws what PeerTable::ReachAddress throws.
  std::shared_ptr<RemoteTask> ClientAt(const std::string& address, std::chrono::steady_clock::time_point deadline);
  // Tells every other task of the cluster that can be reached that training is done. Waits a few seconds for the
  // answers. Logs a warning for a task that is connected and does not answer. A task that ends in the meantime need not
  // answer. Does not throw.
  void TellTrainingDone();

  // These two are called under the peer table's lock.
  void OnPeerConnected(const TaskIdentity& peer);
  void OnPeerGone(const TaskIdentity& peer);
  // Cancels all steps of this process's task that have a partition on `task`, too. Does nothing in a client.
  void OnTaskLost(const std::string& task, const Status& why);

  void OnMessage(const std::shared_ptr<Connection>& connection, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) override;
  void OnStop(const Status& why) override;
  // Waits for the work of sessions that is in progress, and drops leases. Fails, with `why`, the steps for which
  // masters of this process still wait. Requires: OnStop has returned, and all connections have closed.
  void End(const Status& why);

 private:
  // Handles messages to masters in this process. Returns false if the message is of another kind.
  bool HandleReply(const std::shared_ptr<Connection>& connection, Message& message);
  // Handles messages to the task of this process.
  void HandleRequest(const std::shared_ptr<Connection>& connection, Message message);
  void HandleRegister(const std::shared_ptr<Connection>& connection, const Message& message);
  // Called on a thread that may wait.
  void Register(const std::shared_ptr<Connection>& connection, RegisterRequest request);
  void HandleStart(const std::shared_ptr<Connection>& connection, Message message);
  // Answers on a thread of its own, so that the answer comes also if the network threads and compute threads do not.
  void HandleQuestion(const std::shared_ptr<Connection>& connection, const Message& message);
  void HandleValues(const Message& message);
  // These two throw PermissionDeniedError if the peer may not send the message, or if the container belongs to the
  // task.
  void HandleResetContainer(const std::shared_ptr<Connection>& connection, const Message& message);
  void HandleTrainingDone(const std::shared_ptr<Connection>& connection, const Message& message);
  // Connects to every task to which steps of the executable send values. Returns an object that sends over these
  // connections.
  std::unique_ptr<ValueSender> MakeSender(const ExecutableSpec& spec);
  // Returns an error if the lease of `session` has ended, else OK.
  Status WhyToGiveUp(uint64_t session);
  bool IsChief(const std::string& task) const;
  void TellTrainingDoneTo(const DeviceName& task);
  // Schedules work that frees what a session has on this task, and then removes its lease. Does not wait.
  void FreeSession(uint64_t session);
  // Returns the RemoteTask of a connection. There is one for each connection, which all sessions of this process share.
  std::shared_ptr<RemoteTask> RemoteTaskOn(const std::shared_ptr<Connection>& connection) COHORT_EXCLUDES(mu_);

  ClusterNode& node_;
  std::shared_ptr<LocalTask> local_;
  LeaseTable leases_;
  std::unique_ptr<SessionWork> session_work_;
  std::unique_ptr<ThreadPool> answers_;  // null in a client; see HandleQuestion
  Mutex mu_;
  std::map<const Connection*, std::shared_ptr<RemoteTask>> remote_tasks_ COHORT_GUARDED_BY(mu_);
  bool ended_ COHORT_GUARDED_BY(mu_) = false;
};

}  // namespace cohort
