// What every example does before its own subject: flags, its place in a cluster, its server.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cohort/cohort.h"
#include "examples/command_line.h"

namespace examples {

struct ClusterFlags {
  std::string ps_hosts;  // "host:port,host:port"
  std::string worker_hosts;
  std::string job_name;           // "ps" or "worker"
  std::optional<int> task_index;  // default: 0
  std::string bind;
  bool allow_insecure = false;
  std::optional<double> orphan_timeout;  // seconds, for ServerOptions::orphan_timeout
  std::optional<double> chief_timeout;   // seconds, for ServerOptions::chief_timeout
};

void AddClusterFlags(CommandLine& line, ClusterFlags* flags);

// This process's part of the work. Without flags and TF_CONFIG it is a worker on its own, without a server.
struct Task {
  cohort::ClusterSpec cluster;
  std::string job = "worker";
  int index = 0;
  std::unique_ptr<cohort::Server> server;

  std::string target() const { return server == nullptr ? "" : server->Target(); }
  bool is_chief() const { return cohort::IsChief(cluster, job, index); }
  int num_workers() const { return cohort::WorkerCount(cluster, job); }
  // "/job:worker/task:1"; "" without a cluster.
  std::string device() const { return server == nullptr ? "" : cohort::TaskName(job, index); }
  // Variables to the parameter servers, all else to `worker` (default: this task).
  cohort::DeviceFunction replica_device(const std::string& worker = "") const;
};

// The place that the flags give, else TF_CONFIG: the cluster is that of the hosts, or of TF_CONFIG where there are
// none; job and index are those of the flags, which say no other than TF_CONFIG does. Throws InvalidArgumentError where
// that is no place: an unknown job or index, job or index without a cluster.
Task StartTask(const ClusterFlags& flags);

// The body of main(): reads the flags and calls `run`, which returns the exit code. An error goes to stderr by name,
// and the exit code is 1; 2 for wrong flags.
int Main(int argc, char** argv, CommandLine& line, const std::function<int()>& run);

}  // namespace examples
