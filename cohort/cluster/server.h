// Server: the task of this process in a cluster. It lets sessions of all tasks use its devices, and gives its own
// program a target for sessions on the whole cluster.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/export.h"
#include "cohort/core/tls_options.h"
#include "cohort/device/update_observer.h"
#include "cohort/runtime/session.h"

namespace cohort {

class ClusterNode;
class MetricsServer;

// The options of TensorFlow's Server, and some of Cohort's own.
struct COHORT_EXPORT ServerOptions {
  std::string protocol = "grpc";  // or "in_process": no sockets; all tasks of the cluster are in this process
  // The server uses three fields: device_count and intra_op_parallelism_threads for the devices of this task, and
  // connect_timeout for its collectives. If inter_op_parallelism_threads is set, the constructor logs a warning, once
  // in a process. Other fields are ignored.
  SessionConfig config;
  bool start = true;  // true: the constructor calls Start
  std::string bind;   // "host:port" to listen on; "": COHORT_BIND, or else the address in the cluster spec
  // The files of TLS. If none is set: those of the environment (cohort/core/tls_options.h). If that names none either:
  // no TLS. All tasks of a job, and its clients, have TLS, or none of them.
  TlsOptions tls;
  // Without TLS: allow connections to other hosts. The variable COHORT_ALLOW_INSECURE=1 does the same.
  bool allow_insecure = false;
  // With TLS: allow collectives by Gloo, whose connections are not encrypted.
  bool allow_insecure_collectives = false;
  bool share_memory = true;  // use shared memory for large messages to tasks of the same host and user
  std::string token;         // "" = JobToken()
  // Allow a token of fewer than 16 bytes. The variable COHORT_ALLOW_SHORT_TOKEN=1 does the same.
  bool allow_short_token = false;
  std::chrono::milliseconds heartbeat_interval{1000};
  std::chrono::milliseconds silence_limit{4500};  // a peer that sends no byte for this time is lost
  // A process that connects, and has not proved by then that it has the token, is cut off.
  std::chrono::milliseconds handshake_timeout{10000};
  // Limits against peers that connect too often (docs/security.md). They have no effect in process.
  int max_connections = 4096;            // of peers with the token; each has two sockets. More are refused
  int max_handshakes = 256;              // sockets of peers that have not proved yet that they have the token. If there
                                         // are more, the oldest is closed
  int max_handshakes_per_address = 128;  // the same, of one IP address
  int max_failed_handshakes_per_second = 500;  // at least 10; one of TLS counts as ten; beyond it, peers wait
  // Join throws if the chief was connected and has been gone for this time. Zero: never. If not set: as many seconds as
  // COHORT_ORPHAN_TIMEOUT says, or else 60 s.
  std::optional<std::chrono::milliseconds> orphan_timeout;
  // Join throws if the chief has not connected for this time, from the call of Join on. Zero: never. If not set: as
  // many seconds as COHORT_CHIEF_TIMEOUT says, or else 2 h.
  std::optional<std::chrono::milliseconds> chief_timeout;
  // How long a client whose connections have closed may take to connect again without losing the state of its sessions
  // on this task. Zero: the state is freed at once.
  std::chrono::milliseconds reconnect_limit{0};
  // How often a call that waits for a missing task logs that it waits; 0: never.
  std::chrono::milliseconds missing_interval{10000};
  // If not empty: the graphs of other processes may read and write files on this task only in these folders. Symbolic
  // links are resolved. If empty: every peer that has the token may use every path (docs/security.md).
  std::vector<std::string> allow_path;
  // Serve the pages /metrics (for Prometheus) and /healthz on this port of 127.0.0.1, over HTTP, to every program of
  // this machine (docs/monitoring.md). 0: a free port, which the log names. If not set: the port that
  // COHORT_METRICS_PORT says, or else none.
  std::optional<int> metrics_port;
  // The object that is given every update of this task's variables. Null: there is none.
  std::shared_ptr<UpdateObserver> update_observer;
};

// One task of a cluster. The program owns it. Several servers may be in one process. Thread-safe, except Start: no
// other call may run at the same time as Start. Stop ends the server.
class COHORT_EXPORT Server {
 public:
  // `job` may be left out ("") if the spec has only one job, and `task` (-1) if the job has only one task. Throws
  // InvalidArgumentError if the spec has no such task, or if the protocol is unknown. Throws InvalidArgumentError if
  // options.orphan_timeout is not set and COHORT_ORPHAN_TIMEOUT has a value that is not a number of seconds. The same
  // holds for options.chief_timeout and COHORT_CHIEF_TIMEOUT. Throws the errors of Start if options.start is true.
  explicit Server(const ClusterSpec& cluster, const std::string& job = "", int task = -1,
                  const ServerOptions& options = {});
  // Calls Stop.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Makes the devices and begins to serve. Throws the errors of Transport::Listen: UnavailableError if the port is in
  // use; for gRPC also InvalidArgumentError if the address is not local, and PermissionDeniedError if the address is
  // not a loopback address, there is no TLS, and allow_insecure is false. For gRPC throws the errors of LoadTlsIdentity
  // and CheckIsFor (tls/tls_files.h): what is wrong with the files of TLS. Throws NotFoundError if a folder of
  // allow_path does not exist. Throws UnavailableError if options.metrics_port is in use; a COHORT_METRICS_PORT that is
  // in use is only a warning, because several servers of a process may have it. Throws the errors of JobToken if
  // `token` is "". Throws the errors of BackendRegistry::MakeDevices. A second call, and a call after Stop, only logs.
  void Start();
  // Returns the target for Session's constructor: protocol, host and port, such as "grpc://host:port". A session of
  // this process reaches the server's own task without a network. Throws FailedPreconditionError if the server is not
  // started.
  std::string Target() const;
  // Waits while other threads serve. Returns when the chief has said that training is done and no session is open here
  // any more, or after Stop. Throws FailedPreconditionError if the server is not started. Throws UnavailableError if
  // the chief has not connected for chief_timeout, or was connected and has been gone for orphan_timeout; before that,
  // Join tries to connect to the chief. There is no limit while the chief is connected, on the chief itself, and in a
  // cluster without a chief.
  void Join();
  // For a program that waits for something that the chief does, such as the initialization of variables (Supervisor
  // calls it). If the chief is not connected, tries to connect to it, for at most a second. Throws UnavailableError if
  // that fails and the chief was connected to this task and has been gone for orphan_timeout. Does nothing on the
  // chief, after training is done, and if the server is not started or is stopped.
  void ThrowIfChiefIsLost();
  // Returns the port of the pages /metrics and /healthz, or nullopt if there are none.
  std::optional<int> metrics_port() const;
  // Returns whether another task has told this one, by AnnounceDone, that training is done.
  bool training_done() const;
  // Tells all other tasks that can be reached that training is done, so that their Join returns. Waits a few seconds
  // for their answers. Does not throw. The chief calls it (Supervisor does so). Does nothing if the server is not
  // started.
  void AnnounceDone();
  // Ends all sessions on this server's devices, closes all connections and joins the server's threads. Steps that wait
  // for this server fail. Later calls do nothing. A stopped server cannot be started again. If the server was never
  // started, does nothing.
  void Stop();

  const ClusterSpec& cluster() const;
  const std::string& job() const { return job_; }
  int task() const { return task_; }
  // Returns whether this task is the cluster's chief: the job "chief", or worker 0 if there is no such job.
  bool is_chief() const;

 private:
  void StartMetrics();

  ClusterSpec cluster_;
  std::string job_;
  int task_ = 0;
  ServerOptions options_;
  std::chrono::milliseconds orphan_timeout_{};
  std::chrono::milliseconds chief_timeout_{};
  std::string target_;
  std::shared_ptr<ClusterNode> node_;
  std::unique_ptr<MetricsServer> metrics_;  // null if there are no such pages; uses node_
};

}  // namespace cohort
