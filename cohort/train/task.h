// Task: which task of a cluster this process is, and its server. The task comes from the command line or from
// TF_CONFIG. A parameter-server program begins with:
//
//   const train::TaskFlags flags = train::TakeTaskFlags(&argc, argv);
//   const train::Task task = train::StartTask(flags);
//   if (task.job == "ps") return task.Serve();
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/server.h"
#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::train {

// The flags of TensorFlow's parameter-server programs, and some of Cohort's.
struct COHORT_EXPORT TaskFlags {
  std::string ps_hosts;                     // "host:port,host:port"
  std::string worker_hosts;                 // "host:port,host:port"
  std::string job_name;                     // "ps" or "worker"
  std::optional<int> task_index;            // default: 0
  std::string bind;                         // "host:port" to listen on; "": the address of this task in the cluster
  TlsOptions tls;                           // --tls_ca, --tls_certificate, --tls_key: ServerOptions::tls
  bool allow_insecure = false;              // allow connections without TLS to other machines
  bool allow_insecure_collectives = false;  // ServerOptions::allow_insecure_collectives
  std::vector<std::string> allow_path;      // ServerOptions::allow_path; may be given several times
  std::optional<std::chrono::milliseconds> orphan_timeout;  // ServerOptions::orphan_timeout
  std::optional<std::chrono::milliseconds> chief_timeout;   // ServerOptions::chief_timeout
  std::optional<int> metrics_port;                          // ServerOptions::metrics_port
};

// Removes the flags of TaskFlags from the command line: "--ps_hosts=A,B" or "--ps_hosts A,B". A dash in a flag's name
// means the same as an underscore. Other words stay in `argv` in their order, and `*argc` becomes their number. Words
// after "--" stay. Throws InvalidArgumentError for a value that is missing or invalid. Throws it also for an unknown
// flag of at least six letters that differs from one of these flags by one or two letters ("--task_idex"). The error
// names the flag.
COHORT_EXPORT TaskFlags TakeTaskFlags(int* argc, char** argv);
// Returns one line for each flag, for a program's --help.
COHORT_EXPORT std::string TaskFlagsHelp();

// The task of this process. The program owns the Task, which owns the server. Without a cluster (in flags or
// TF_CONFIG), the process trains alone: it is a worker without a server.
struct COHORT_EXPORT Task {
  ClusterSpec cluster;
  std::string job = "worker";
  int index = 0;
  std::unique_ptr<Server> server;  // null without a cluster

  // Returns the target for a Session: the server's, or "" without a cluster.
  std::string target() const { return server == nullptr ? "" : server->Target(); }
  bool is_chief() const;
  int num_workers() const;
  // Returns "/job:worker/task:1", or "" without a cluster.
  std::string device() const;
  // Returns a device function for a DeviceScope. It puts variables on the parameter servers in turn, and everything
  // else on `worker` (default: this task). Without a cluster or without parameter servers, it leaves devices as they
  // are.
  DeviceFunction replica_device(const std::string& worker = "") const;
  // Serves until the chief says that training is done. Returns 0, the exit code of main. Throws FailedPreconditionError
  // without a cluster. Throws what Server::Join throws.
  int Serve() const;
};

// Finds the task and starts its server. If the flags have hosts, the hosts are the cluster, the flags give job and
// index, and TF_CONFIG is ignored. Otherwise the cluster is TF_CONFIG's. If TF_CONFIG has a job, it is taken, and a job
// in the flags must be equal to it. If TF_CONFIG has none, the job of the flags is taken. The same holds for the index.
// Throws InvalidArgumentError if job or index is unknown or not equal, if there is a job or index but no cluster, and
// for an evaluator. Throws what Server's constructor throws.
COHORT_EXPORT Task StartTask(const TaskFlags& flags);

}  // namespace cohort::train
