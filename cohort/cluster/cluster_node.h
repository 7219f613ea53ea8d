// ClusterNode: one process in a cluster - its connections, its part of the step protocol, and, where it is a server,
// the task that it runs. A Server owns one; a program outside the cluster has one as /job:client.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cohort/cluster/chief_watch.h"
#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/node_service.h"
#include "cohort/cluster/protocol.h"
#include "cohort/cluster/session_work.h"
#include "cohort/cluster/transport.h"
#include "cohort/core/mutex.h"
#include "cohort/runtime/local_task.h"

namespace cohort {

class RemoteTask;

// Thread-safe.
class ClusterNode final : public TransportHandler, public std::enable_shared_from_this<ClusterNode> {
 public:
  using TransportMaker = std::function<std::unique_ptr<Transport>(TransportHandler&)>;

  // `task`: full task name of this process. `local` is null for a client. `chief`: name of the chief's task, or "".
  ClusterNode(ClusterSpec cluster, DeviceName task, std::shared_ptr<const DeviceSet> devices,
              std::shared_ptr<TaskResources> resources, const TransportMaker& make_transport, std::string chief);
  ~ClusterNode() override;

  // Begins to serve on `address`; returns the bound port.
  int Listen(const std::string& address);
  // After Listen (or instead of it, for a client): what peers are told. `address` is "" for a client.
  void Announce(const std::string& address);
  // Closes all connections and ends all sessions; no thread of this node runs afterwards. Idempotent.
  void Stop(const Status& why);

  const ClusterSpec& cluster() const { return cluster_; }
  // For a client that has learnt it from the task it was pointed at.
  void set_cluster(ClusterSpec cluster) { cluster_ = std::move(cluster); }
  // How often a call that waits for a task says who is missing; 0: never. Set before Listen.
  void set_missing_interval(std::chrono::milliseconds interval) {
    missing_interval_ = interval.count() > 0 ? interval : std::chrono::hours(24 * 365);
  }
  std::chrono::milliseconds missing_interval() const { return missing_interval_; }
  const DeviceName& task() const { return task_; }
  const std::shared_ptr<LocalTask>& local_task() const { return local_; }
  const TaskIdentity& identity() const { return identity_; }
  // How long what this task does by itself waits for tasks that nobody has seen yet. Set before Announce.
  std::chrono::milliseconds connect_timeout() const { return connect_timeout_; }
  void set_connect_timeout(std::chrono::milliseconds timeout) { connect_timeout_ = timeout; }

  // A live connection to `task`, made where there is none; waits for a task that nobody has seen yet and says every
  // missing_interval who is missing. Throws NotFoundError for a task that the spec lacks, DeadlineExceededError, and
  // what a handshake throws.
  std::shared_ptr<Connection> Reach(const DeviceName& task, std::chrono::steady_clock::time_point deadline);
  // By one attempt, without a wait for a task that does not listen yet: null where nobody does, or where nobody has
  // answered by `deadline`. Else the same.
  std::shared_ptr<Connection> TryReach(const DeviceName& task, std::chrono::steady_clock::time_point deadline);
  // When a task that this process was connected to and is no more was last heard of; nothing where it never was, or is
  // again.
  std::optional<std::chrono::steady_clock::time_point> GoneSince(const std::string& task) EXCLUDES(mu_);
  // The same as Reach for an address whose task is not known.
  std::shared_ptr<Connection> ReachAddress(const std::string& address, std::chrono::steady_clock::time_point deadline);
  // A client for the steps of `task` over a live connection.
  std::shared_ptr<TaskClient> ClientFor(const DeviceName& task, std::chrono::steady_clock::time_point deadline);

  // The service of a kind of messages; null where there is none.
  NodeService* FindService(uint16_t kind) const;

  // Tells every task of the cluster that can be reached that training is done, and waits a few seconds for the answers.
  // A task that ends meanwhile needs none; one that lives and does not answer is warned of. Does not throw.
  void AnnounceDone();
  // Waits until this task is to end. See ChiefWatch::WaitForEnd.
  void WaitForEnd(const ChiefWatch::Limits& limits);
  // See ChiefWatch::ThrowIfLost.
  void ThrowIfChiefIsLost(std::chrono::milliseconds orphan_timeout);

  void OnAccepted(const std::shared_ptr<Connection>& connection) override;
  void OnMessage(const std::shared_ptr<Connection>& connection, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) override;

 private:
  struct Lease {
    std::shared_ptr<Connection> master;
    bool ended = false;  // will be dropped as soon as what is under way for the session has ended
  };
  // When a dialed peer is given up.
  struct Patience {
    std::chrono::steady_clock::time_point deadline;
    std::chrono::steady_clock::time_point if_refused = std::chrono::steady_clock::time_point::max();
    std::optional<uint64_t> lease = std::nullopt;  // for which the peer is wanted: also when it ends
  };

  // Throws NotFoundError for a task that the spec lacks.
  const std::string& AddressOf(const DeviceName& task) const;
  // Every task of the cluster but this one.
  std::vector<DeviceName> Others() const;
  std::shared_ptr<Connection> FindConnection(const std::string& task) EXCLUDES(mu_);
  void Remember(const std::shared_ptr<Connection>& connection) EXCLUDES(mu_);
  std::shared_ptr<Connection> ReachTask(const DeviceName& task, const Patience& patience);
  std::shared_ptr<Connection> DialUntil(const std::string& address, const std::string& task, const Patience& patience);
  // Waits until `until`, unless the peer connects to us before, or the node stops, or the lease of `patience` ends.
  void PauseDialing(const std::string& task, std::chrono::steady_clock::time_point until, const Patience& patience)
      EXCLUDES(mu_);
  void TellDone(const DeviceName& task);
  // Connects to the chief by one attempt. Returns "" if it is connected, else the reason why not.
  std::string LookForChief() EXCLUDES(mu_);
  // Values for a task go to the process that was it first. Waits a while for that one to go away, where the peer is
  // another; throws AlreadyExistsError that names the two.
  void CheckFirstOfItsTask(const Connection& connection) EXCLUDES(mu_);
  void HandleRegister(const std::shared_ptr<Connection>& connection, RegisterRequest request);
  void HandleStart(const std::shared_ptr<Connection>& connection, Message message);
  void HandleValues(Message message);
  void SendValues(const ExecutableKey& key, const std::string& task, int64_t step, std::vector<EdgeValue> values);
  void DropLease(uint64_t session);
  // "", or which task went first, and when: this process may end because of it.
  std::string AfterWhom() EXCLUDES(mu_);
  // The one RemoteTask of a connection, made where there is none; all sessions of this process share it.
  std::shared_ptr<RemoteTask> RemoteTaskOn(const std::shared_ptr<Connection>& connection) EXCLUDES(mu_);

  ClusterSpec cluster_;
  const DeviceName task_;
  const std::string chief_name_;
  ChiefWatch chief_;
  std::chrono::milliseconds missing_interval_{10000};
  TaskIdentity identity_;
  std::chrono::milliseconds connect_timeout_{std::chrono::hours(2)};
  std::shared_ptr<LocalTask> local_;

  Mutex mu_;
  CondVar changed_;
  std::multimap<std::string, std::shared_ptr<Connection>> connections_ GUARDED_BY(mu_);      // by the peer's task
  std::map<std::string, std::chrono::steady_clock::time_point> gone_since_ GUARDED_BY(mu_);  // by task
  std::map<const Connection*, std::shared_ptr<RemoteTask>> remote_tasks_ GUARDED_BY(mu_);
  std::map<uint64_t, Lease> leases_ GUARDED_BY(mu_);
  bool stopped_ GUARDED_BY(mu_) = false;

  struct Service {
    uint16_t first_kind;
    uint16_t last_kind;
    std::unique_ptr<NodeService> service;
  };
  std::vector<Service> services_;  // constant after construction
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<SessionWork> clerk_;
};

}  // namespace cohort
