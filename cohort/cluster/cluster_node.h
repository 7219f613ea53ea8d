// ClusterNode: one process in a cluster. It owns the connections of the process (PeerTable), its part of the step
// protocol (StepService), what it knows of the chief (ChiefWatch), and the node services of other modules. A Server
// owns a node. A program outside the cluster also has a node, as /job:client.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/chief_watch.h"
#include "cohort/cluster/node_service.h"
#include "cohort/cluster/peer_table.h"
#include "cohort/cluster/status/status_service.h"
#include "cohort/cluster/status/task_state.h"
#include "cohort/cluster/steps/step_service.h"
#include "cohort/cluster/transport.h"

namespace cohort {

// The options of a ClusterNode.
struct NodeOptions {
  std::string chief;  // full name of the chief's task, or "" if there is none
  // A call that waits for a missing task logs once in each such interval that it waits; zero: never.
  std::chrono::milliseconds missing_interval{10000};
  // How long this task waits for other tasks if it does something without a deadline of a caller, such as joining a
  // group.
  std::chrono::milliseconds connect_timeout{std::chrono::hours(2)};
  // How long a client whose connections have closed may take to connect again without losing its sessions on this task.
  // Zero: it loses them at once.
  std::chrono::milliseconds reconnect_limit{0};
  // Makes a new client that can reach the tasks that this node can reach (client_node.h). Through it a master asks a
  // late task what it does: the handler of a message may block the connection that the step uses.
  std::function<std::shared_ptr<class ClusterNode>()> make_client;
  // Whether this process only asks tasks for their status. Then tasks that know other ops accept its connections, and
  // all tasks refuse its other messages.
  bool asks_only = false;
  // Whether collectives may use only the connections of the transport.
  bool only_protected_collectives = false;
};

// Ties the parts of one process in a cluster together: it passes messages and news of connections to them. A Server or
// a session of a client owns it through shared_ptr. Thread-safe. Stop ends it.
class ClusterNode final : public TransportHandler,
                          public PeerListener,
                          public std::enable_shared_from_this<ClusterNode> {
 public:
  using TransportMaker = std::function<std::unique_ptr<Transport>(TransportHandler&)>;

  // `task` is the full task name of this process. `devices` and `resources` are null for a client, which runs no task.
  ClusterNode(ClusterSpec cluster, DeviceName task, std::shared_ptr<const DeviceSet> devices,
              std::shared_ptr<TaskResources> resources, const TransportMaker& make_transport,
              const NodeOptions& options);
  // Calls Stop.
  ~ClusterNode() override;

  // Begins to accept connections on `address`. Returns the port. Throws the errors of Transport::Listen. Peers get no
  // answer before PeerTable::SetAddress.
  int Listen(const std::string& address);
  // Ends all sessions on this task, fails with `why` the steps for which masters of this process wait, and closes all
  // connections. When the first call of Stop returns, no thread of this node runs any more. Later calls do nothing and
  // return at once, even if the first call is still running. Must not be called on a network thread.
  void Stop(const Status& why);

  const DeviceName& task() const { return task_; }
  const NodeOptions& options() const { return options_; }
  PeerTable& peers() { return peers_; }
  ChiefWatch& chief() { return chief_; }
  StepService& steps() { return *steps_; }
  StatusService& status() { return *status_; }
  // The next four functions return what the functions with the same names of peers() and steps() return.
  const ClusterSpec& cluster() const { return peers_.cluster(); }
  const TaskIdentity& identity() const { return peers_.identity(); }
  const std::shared_ptr<LocalTask>& local_task() const { return steps_->local_task(); }
  std::chrono::milliseconds missing_interval() const { return peers_.missing_interval(); }
  // Returns options().connect_timeout.
  std::chrono::milliseconds connect_timeout() const { return options_.connect_timeout; }
  // Does the same as PeerTable::TryReach, but logs the reason for which there is no connection.
  std::shared_ptr<Connection> TryReach(const DeviceName& task, std::chrono::steady_clock::time_point deadline);
  // See PeerTable::GoneSince.
  std::optional<std::chrono::steady_clock::time_point> GoneSince(const std::string& task) {
    return peers_.GoneSince(task);
  }

  // Returns the service that handles the messages of a kind, or nullptr if there is none.
  NodeService* FindService(uint16_t kind) const;

  // Returns what this process waits for in its services.
  std::vector<CollectiveWait> Waits();

  // Waits until this task may end, and throws if a limit has passed, as ChiefWatch::WaitForEnd does.
  void WaitForEnd(const ChiefWatch::Limits& limits);
  // Throws UnavailableError if the chief is lost. See ChiefWatch::ThrowIfLost.
  void ThrowIfChiefIsLost(std::chrono::milliseconds orphan_timeout);

  void OnAccepted(const std::shared_ptr<Connection>& connection) override;
  void OnMessage(const std::shared_ptr<Connection>& connection, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) override;
  void OnPeerConnected(const TaskIdentity& peer) override;
  void OnPeerGone(const TaskIdentity& peer, bool task_gone) override;

 private:
  struct Service {
    uint16_t first_kind;
    uint16_t last_kind;
    std::unique_ptr<NodeService> service;
  };

  // Makes one attempt to connect to the chief. Returns "" if the chief is connected, else the reason why it is not.
  std::string LookForChief();

  const DeviceName task_;
  const NodeOptions options_;
  std::atomic<bool> stopped_{false};
  ChiefWatch chief_;
  PeerTable peers_;
  std::unique_ptr<StepService> steps_;
  std::vector<Service> services_;  // of other modules; constant after construction
  std::unique_ptr<StatusService> status_;
};

}  // namespace cohort
