// PeerTable: the connections of one process to the tasks of its cluster, and how they are made.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/transport.h"
#include "cohort/core/mutex.h"
#include "cohort/graph/device_name.h"

namespace cohort {

// "/job:ps/replica:0/task:1", as connections and devices name a task.
DeviceName FullTaskName(const std::string& job, int index);

// When an attempt to reach a peer is given up.
struct DialLimits {
  std::chrono::steady_clock::time_point deadline;
  // If this is earlier, it is the deadline for a peer whose address refuses connections.
  std::chrono::steady_clock::time_point if_refused = std::chrono::steady_clock::time_point::max();
  // Asked while the dialer waits between two attempts. An error ends the wait and is thrown. It is asked at once after
  // PeerTable::Wake. Must not call the table. May be null.
  std::function<Status()> interrupted = nullptr;
};

// Hears how peers come and go. Every call is made under the table's lock, so the calls have one order, and they must
// not call the table.
class PeerListener {
 public:
  virtual ~PeerListener() = default;
  // `peer`'s process has a new connection.
  virtual void OnPeerConnected(const TaskIdentity& peer) = 0;
  // The last connection of `peer`'s process has closed. `task_gone`: no other process of that task is connected.
  virtual void OnPeerGone(const TaskIdentity& peer, bool task_gone) = 0;
};

// Owned by the node of the process. Thread-safe. Stop ends every wait; the transport's Shutdown ends every connection.
class PeerTable {
 public:
  // `handler` gets OnClosed for a connection that was closed before it was known here. `listener` and `handler` outlive
  // the table. `missing_interval`: how often a call that waits for a task says that the task is missing; zero: never.
  PeerTable(ClusterSpec cluster, const DeviceName& self, std::unique_ptr<Transport> transport,
            TransportHandler& handler, PeerListener& listener, std::chrono::milliseconds missing_interval);

  const ClusterSpec& cluster() const { return cluster_; }
  // For a client, which learns its cluster from the task that it was pointed at. Call before any other thread uses the
  // table.
  void set_cluster(ClusterSpec cluster) { cluster_ = std::move(cluster); }
  std::chrono::milliseconds missing_interval() const { return missing_interval_; }
  // What this process tells its peers.
  const TaskIdentity& identity() const { return identity_; }
  // Call after Transport::Listen, or instead of it with "" for a client. Peers are answered from now on.
  void SetAddress(const std::string& address);
  Transport& transport() { return *transport_; }

  // Returns a live connection to `task`. Makes one if there is none: waits for a task that is not up yet, and says
  // every missing_interval that it is missing. Throws NotFoundError for a task that the cluster lacks; UnavailableError
  // with the last telling reason at the limits; CancelledError after Stop; what `interrupted` returned; what a
  // handshake throws.
  std::shared_ptr<Connection> Reach(const DeviceName& task, const DialLimits& limits) COHORT_EXCLUDES(mu_);
  // The same for an address whose task is not known.
  std::shared_ptr<Connection> ReachAddress(const std::string& address, const DialLimits& limits) COHORT_EXCLUDES(mu_);
  // Returns a live connection to `task`, or makes one attempt. If the attempt fails, sets `*why_not` and returns null
  // if nobody listens or nobody has answered by `deadline`. Throws NotFoundError and what a handshake throws.
  std::shared_ptr<Connection> TryReach(const DeviceName& task, std::chrono::steady_clock::time_point deadline,
                                       std::string* why_not) COHORT_EXCLUDES(mu_);
  // Returns the first live connection to `task`, or null.
  std::shared_ptr<Connection> Find(const std::string& task) COHORT_EXCLUDES(mu_);

  // Takes a new connection in.
  void Add(const std::shared_ptr<Connection>& connection) COHORT_EXCLUDES(mu_);
  // Forgets a closed connection. Returns false if another, earlier process of the same task is connected, so that the
  // task itself is not lost (CheckFirstOfItsTask).
  bool Remove(const std::shared_ptr<Connection>& connection) COHORT_EXCLUDES(mu_);

  // Returns the time at which a lost task was last heard of, or nullopt if the task is connected or was never seen.
  std::optional<std::chrono::steady_clock::time_point> GoneSince(const std::string& task) COHORT_EXCLUDES(mu_);
  // Returns "", or which task was lost first and how long ago: this process may end because of it.
  std::string DescribeFirstLostTask() COHORT_EXCLUDES(mu_);
  // Values for a task go to the process that was first to connect as that task. Waits up to 10 s for that process to
  // disconnect if the peer is another one; then throws AlreadyExistsError that names the two.
  void CheckFirstOfItsTask(const Connection& connection) COHORT_EXCLUDES(mu_);

  // Lets waiting dialers ask their `interrupted`.
  void Wake() COHORT_EXCLUDES(mu_);
  // Ends all waits; connections that come later are not taken in. Idempotent.
  void Stop() COHORT_EXCLUDES(mu_);
  // Forgets all connections, without a word to the listener. Requires: Stop and the transport's Shutdown have returned.
  void Clear() COHORT_EXCLUDES(mu_);

 private:
  using Clock = std::chrono::steady_clock;

  // Throws NotFoundError for a task that the cluster lacks.
  const std::string& AddressOf(const DeviceName& task) const;
  std::shared_ptr<Connection> FindLocked(const std::string& task) COHORT_REQUIRES(mu_);
  std::shared_ptr<Connection> DialUntil(const std::string& address, const std::string& task, const DialLimits& limits)
      COHORT_EXCLUDES(mu_);
  // Waits until `until`, unless the peer connects to this process before. Throws what ends the dialing.
  void PauseDialing(const std::string& task, Clock::time_point until, const DialLimits& limits) COHORT_EXCLUDES(mu_);

  ClusterSpec cluster_;
  const std::chrono::milliseconds missing_interval_;
  TaskIdentity identity_;
  TransportHandler& handler_;
  PeerListener& listener_;
  const std::unique_ptr<Transport> transport_;

  Mutex mu_;
  CondVar changed_;
  std::multimap<std::string, std::shared_ptr<Connection>> connections_ COHORT_GUARDED_BY(mu_);  // by task, oldest first
  std::map<std::string, Clock::time_point> gone_since_ COHORT_GUARDED_BY(mu_);                  // by task
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;
};

// What OnClosed says of a connection that was found closed.
Status ClosedStatus(const Connection& connection);

}  // namespace cohort
