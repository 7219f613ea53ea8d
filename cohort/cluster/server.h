// Server: this process's task in a cluster. It serves its devices to sessions of all tasks and gives its own program a
// target for sessions on the whole cluster.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/device/update_observer.h"
#include "cohort/runtime/session.h"

namespace cohort {

class ClusterNode;

// The arguments of TensorFlow's Server(...), and what is ours.
struct ServerOptions {
  std::string protocol = "grpc";  // or "in_process": no sockets, all tasks of the cluster live in this process
  // device_count, intra_op_parallelism_threads of this task's devices; connect_timeout_secs of its collectives.
  SessionConfig config;
  bool start = true;            // begin to serve in the constructor
  std::string bind;             // "host:port" to listen on where that is not the spec's address
  bool allow_insecure = false;  // listen and connect off loopback without TLS
  bool share_memory = true;     // with tasks of the same host and user, for large messages
  std::string token;            // "" = JobToken()
  std::chrono::milliseconds heartbeat_interval{1000};
  std::chrono::milliseconds silence_limit{4500};  // a peer without any byte for so long is lost: named within 5 s
  // Join fails if the chief was connected and has been gone for so long. Zero: never. Default: as many seconds as
  // COHORT_ORPHAN_TIMEOUT says, else 60 s.
  std::optional<std::chrono::milliseconds> orphan_timeout;
  // Join fails if the chief has not come for so long. Zero: never. Default: as many seconds as COHORT_CHIEF_TIMEOUT
  // says, else 2 h.
  std::optional<std::chrono::milliseconds> chief_timeout;
  // How long a client whose connections have closed may take to connect again and keep its sessions' state on this
  // task. Zero: the state is freed at once.
  std::chrono::milliseconds reconnect_limit{0};
  // How often a call that waits for a task says that the task is missing; 0 = never.
  std::chrono::milliseconds missing_interval{10000};
  // Is given every update of this task's variables. Null: nobody is.
  std::shared_ptr<UpdateObserver> update_observer;
};

// Thread-safe. Several servers may live in one process.
class Server {
 public:
  // `job` and `task` may be left out ("" and -1) where the spec has only one. Throws InvalidArgumentError for a task
  // that the spec lacks or an unknown protocol, and what Start throws.
  explicit Server(const ClusterSpec& cluster, const std::string& job = "", int task = -1,
                  const ServerOptions& options = {});
  // Stops.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Throws UnavailableError for a port in use, InvalidArgumentError for an address that is not local,
  // PermissionDeniedError off loopback without TLS. A second call does nothing.
  void Start();
  // "grpc://host:port" (the protocol, and the port that was bound). For Session's constructor; inside this process no
  // network is used to reach the server's own task.
  std::string Target() const;
  // Serves until the cluster is done: returns when the chief has said that training is done and no session is open here
  // any more, or after Stop. Throws UnavailableError if the chief does not come for chief_timeout, or was connected and
  // has been gone for orphan_timeout. While the chief is not connected, Join looks for it. It serves without a limit
  // while the chief is connected, on the chief itself, and in a cluster that has no chief.
  void Join();
  // For a task that waits for something that the chief does, such as giving variables their values (Supervisor calls
  // it). Looks for the chief if it is not connected. Throws UnavailableError if the chief was connected to this task
  // and has been gone for orphan_timeout. Takes at most a second. Does nothing on the chief.
  void ThrowIfChiefIsLost();
  // Tells all tasks that training is done, so that their Join returns. The chief calls it (Supervisor does).
  void AnnounceDone();
  // Ends all sessions on this server's devices, closes all connections. Idempotent; a stopped server stays stopped.
  void Stop();

  const ClusterSpec& cluster() const;
  const std::string& job() const { return job_; }
  int task() const { return task_; }
  // Whether this task is the cluster's chief ("chief", else worker 0).
  bool is_chief() const;

 private:
  ClusterSpec cluster_;
  std::string job_;
  int task_ = 0;
  ServerOptions options_;
  std::chrono::milliseconds orphan_timeout_{};
  std::chrono::milliseconds chief_timeout_{};
  std::string target_;
  std::shared_ptr<ClusterNode> node_;
};

}  // namespace cohort
