// PeerTable: makes and keeps the connections of one process to the tasks of its cluster.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/transport.h"
#include "cohort/core/mutex.h"
#include "cohort/graph/device_name.h"

namespace cohort {

// Returns the name of a task in the form that connections and devices use: "/job:ps/replica:0/task:1".
DeviceName FullTaskName(const std::string& job, int index);

// When to stop the attempts to reach a peer.
struct DialLimits {
  std::chrono::steady_clock::time_point deadline;
  // If this is earlier than `deadline`: the deadline for a peer whose address refuses connections.
  std::chrono::steady_clock::time_point if_refused = std::chrono::steady_clock::time_point::max();
  // Lets the caller end the attempts: if `interrupted` returns an error, Reach or ReachAddress throws that error, and
  // adds the name of the task to its message. The table calls it before each pause between two attempts, and in an
  // attempt that takes long. If PeerTable::Wake is called in a pause, the table calls it then, too. It may be called
  // under the table's lock, so it must not call the table. May be null.
  std::function<Status()> interrupted = nullptr;
};

// Is told when peers connect and disconnect. A ClusterNode implements it. The table makes every call under its lock. So
// the calls come one after another, and they must not call the table.
class PeerListener {
 public:
  virtual ~PeerListener() = default;
  // The process `peer` has a new connection.
  virtual void OnPeerConnected(const TaskIdentity& peer) = 0;
  // The last connection of the process `peer` has closed. `task_gone` is true if no other process of the same task is
  // connected.
  virtual void OnPeerGone(const TaskIdentity& peer, bool task_gone) = 0;
};

// Makes and keeps connections. A ClusterNode owns it, and it owns the transport. Thread-safe, except set_cluster and
// SetAddress. Stop ends all waits for missing tasks. The transport's Shutdown closes all connections.
class PeerTable {
 public:
  // `listener` must live longer than the table. A call that waits for a missing task logs this every
  // `missing_interval` (zero: never). `op_fingerprint` is the one of TaskIdentity.
  PeerTable(ClusterSpec cluster, const DeviceName& self, std::unique_ptr<Transport> transport, PeerListener& listener,
            std::chrono::milliseconds missing_interval, uint64_t op_fingerprint);

  const ClusterSpec& cluster() const { return cluster_; }
  // Sets the cluster of a client, which asks a task for it. Network threads may call Remove at the same time. Requires:
  // no other thread calls cluster(), Reach or TryReach yet.
  void set_cluster(ClusterSpec cluster) COHORT_EXCLUDES(mu_);
  // Returns the interval of the constructor, or a year if that was zero.
  std::chrono::milliseconds missing_interval() const { return missing_interval_; }
  // Returns what this process tells its peers about itself.
  const TaskIdentity& identity() const { return identity_; }
  // Sets the address that this process tells its peers; "" for a client. From then on this process answers
  // handshakes. Call it after Transport::Listen; a client does not listen.
  void SetAddress(const std::string& address);
  Transport& transport() { return *transport_; }

  // Returns a connection to `task` that is not closed. Makes one if there is none. Waits for a task that is not up, and
  // logs every missing_interval that it is missing. Throws
  // - NotFoundError if the cluster has no such task;
  // - UnavailableError, with the reason of the last attempt, if a time in `limits` is reached;
  // - CancelledError after Stop;
  // - the error that `limits.interrupted` has returned;
  // - InvalidArgumentError, PermissionDeniedError or FailedPreconditionError if Transport::Dial throws it, because
  //   another attempt is then of no use.
  std::shared_ptr<Connection> Reach(const DeviceName& task, const DialLimits& limits) COHORT_EXCLUDES(mu_);
  // Does the same for an address whose task is not known, but always makes a new connection.
  std::shared_ptr<Connection> ReachAddress(const std::string& address, const DialLimits& limits) COHORT_EXCLUDES(mu_);
  // Returns a connection to `task` that is not closed, or makes one attempt to connect. If no process listens there, or
  // none answers by `deadline`, sets `*why_not` to kUnavailable or kDeadlineExceeded and returns nullptr. Throws
  // NotFoundError if the cluster has no such task, and the errors of Transport::Dial that Reach throws.
  std::shared_ptr<Connection> TryReach(const DeviceName& task, std::chrono::steady_clock::time_point deadline,
                                       Status* why_not) COHORT_EXCLUDES(mu_);
  // Returns all connections.
  std::vector<std::shared_ptr<Connection>> Connections() COHORT_EXCLUDES(mu_);
  // The bytes of messages to and from other tasks.
  struct Traffic {
    int64_t sent = 0;
    int64_t received = 0;
  };
  // Returns the bytes over all connections that the table has or had.
  Traffic traffic() COHORT_EXCLUDES(mu_);
  // A task that is connected, or that was connected and is in the cluster.
  struct Peer {
    std::string task;
    std::string address;
    bool connected = false;
    std::chrono::milliseconds silent{0};  // the time since its last byte
    Traffic traffic;                      // over the connections that the table has now
  };
  // Returns the peers, sorted by task.
  std::vector<Peer> ListPeers() COHORT_EXCLUDES(mu_);
  // Returns the oldest connection to `task` that is not closed, or nullptr.
  std::shared_ptr<Connection> Find(const std::string& task) COHORT_EXCLUDES(mu_);

  // Adds a new connection and calls the listener. If Remove was called for the connection before, removes it at once.
  // Does nothing after Stop.
  void Add(const std::shared_ptr<Connection>& connection) COHORT_EXCLUDES(mu_);
  // Removes a closed connection, and calls the listener if the process of the peer has no other connection. Must be
  // called once for each connection, after Add or before it. Returns false if an earlier process of the same task is
  // still connected; then the task itself is not lost (see CheckFirstOfItsTask). Otherwise returns true. After Stop,
  // only returns true.
  bool Remove(const std::shared_ptr<Connection>& connection) COHORT_EXCLUDES(mu_);

  // If the connections to `task` have closed, returns the time at which its last byte came. Returns nullopt if the task
  // is connected, was never connected, or is not in the cluster.
  std::optional<std::chrono::steady_clock::time_point> GoneSince(const std::string& task) COHORT_EXCLUDES(mu_);
  // Returns a text that names the task that was lost first, and how long ago. This process may end for that reason, so
  // it adds the text to its goodbyes. Returns "" if all tasks that were seen are connected.
  std::string DescribeFirstLostTask() COHORT_EXCLUDES(mu_);
  // Checks that the peer of `connection` is the process to which values for its task are sent: the first process that
  // has connected as that task. If another process is first, waits up to 10 s until that one disconnects. If it does
  // not, or after Stop, throws AlreadyExistsError that names both processes.
  void CheckFirstOfItsTask(const Connection& connection) COHORT_EXCLUDES(mu_);

  // Makes the threads that wait in Reach or ReachAddress call their `interrupted` now.
  void Wake() COHORT_EXCLUDES(mu_);
  // Ends the waits of Reach, ReachAddress and CheckFirstOfItsTask, which then throw. An attempt to connect that is
  // under way ends by itself or with the transport's Shutdown. Connections that come later are not added.
  void Stop() COHORT_EXCLUDES(mu_);
  // Removes all connections without calls of the listener. Requires: Stop and the transport's Shutdown have returned.
  void Clear() COHORT_EXCLUDES(mu_);

 private:
  using Clock = std::chrono::steady_clock;

  // Logs a warning, once for each task, if the peer was started with another cluster than this process.
  void CompareClusters(const TaskIdentity& peer) COHORT_EXCLUDES(mu_);
  // Throws NotFoundError if the cluster has no such task.
  const std::string& AddressOf(const DeviceName& task) const;
  std::shared_ptr<Connection> FindLocked(const std::string& task) COHORT_REQUIRES(mu_);
  bool RemoveLocked(const std::shared_ptr<Connection>& connection) COHORT_REQUIRES(mu_);
  std::shared_ptr<Connection> DialUntil(const std::string& address, const std::string& task, const DialLimits& limits)
      COHORT_EXCLUDES(mu_);
  // Waits until `until`, or until the peer has connected to this process. Throws what Reach throws after Stop or if it
  // is interrupted.
  void PauseDialing(const std::string& task, Clock::time_point until, const DialLimits& limits) COHORT_EXCLUDES(mu_);

  ClusterSpec cluster_;  // written and read on network threads under mu_; see set_cluster
  const std::chrono::milliseconds missing_interval_;
  TaskIdentity identity_;
  PeerListener& listener_;
  const std::unique_ptr<Transport> transport_;

  Mutex mu_;
  CondVar changed_;
  std::multimap<std::string, std::shared_ptr<Connection>> connections_ COHORT_GUARDED_BY(mu_);  // by task, oldest first
  std::map<std::string, Clock::time_point> gone_since_ COHORT_GUARDED_BY(mu_);                  // by task
  // Connections for which Remove was called before Add: their transport saw the end before Dial had returned.
  std::set<std::weak_ptr<Connection>, std::owner_less<>> closed_early_ COHORT_GUARDED_BY(mu_);
  std::set<std::string> compared_ COHORT_GUARDED_BY(mu_);  // tasks whose cluster was found to differ
  Traffic closed_traffic_ COHORT_GUARDED_BY(mu_);          // over connections that were removed
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;
};

// Returns the status kUnavailable for a connection that was found to be closed, if it is not known why it has closed.
Status ClosedStatus(const Connection& connection);

}  // namespace cohort
