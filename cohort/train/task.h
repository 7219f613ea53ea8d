// Task: this process's place in a cluster, from its command line or TF_CONFIG, with the server that the place needs.
// What a parameter-server program does first:
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
#include "cohort/graph/graph.h"

namespace cohort::train {

// The flags of TensorFlow's parameter-server programs, and some of our own.
struct TaskFlags {
  std::string ps_hosts;           // "host:port,host:port"
  std::string worker_hosts;       // likewise
  std::string job_name;           // "ps" or "worker"
  std::optional<int> task_index;  // default: 0
  std::string bind;               // "host:port" to listen on, if that is not the address in the hosts
  bool allow_insecure = false;    // work without TLS beyond this machine
  std::optional<std::chrono::milliseconds> orphan_timeout;  // ServerOptions::orphan_timeout
  std::optional<std::chrono::milliseconds> chief_timeout;   // ServerOptions::chief_timeout
};

// Takes these flags out of the command line: "--ps_hosts=A,B" or "--ps_hosts A,B", dashes in a name do for underscores.
// What is not one of them stays in `argv`, in its order, and `*argc` becomes the count of what is left; words behind
// "--" are left alone. Throws InvalidArgumentError for a value that is missing or is not of the flag's kind, and for a
// flag that is nearly one of these ("--task_idex"), with its name.
TaskFlags TakeTaskFlags(int* argc, char** argv);
// One line a flag, for a program's --help.
std::string TaskFlagsHelp();

// Without flags and TF_CONFIG it is a worker on its own, without a server.
struct Task {
  ClusterSpec cluster;
  std::string job = "worker";
  int index = 0;
  std::unique_ptr<Server> server;  // null without a cluster

  // For a Session: the server's target; "" without a cluster.
  std::string target() const { return server == nullptr ? "" : server->Target(); }
  bool is_chief() const;
  int num_workers() const;
  // "/job:worker/task:1"; "" without a cluster.
  std::string device() const;
  // For a DeviceScope: puts variables on the parameter servers by turns, everything else on `worker` (default: this
  // task).
  DeviceFunction replica_device(const std::string& worker = "") const;
  // Serves until the chief says that training is done, and returns 0, the exit code of main. Throws what Server::Join
  // throws. Requires: there is a cluster.
  int Serve() const;
};

// Finds the place that the flags give, or else TF_CONFIG, and starts the server. The cluster is that of the hosts, or
// the one of TF_CONFIG if there are no hosts. If flags and TF_CONFIG both give job and index they have to be equal.
// Throws InvalidArgumentError for an unknown job or index, for a job or index without a cluster, and for an evaluator;
// what Server's constructor throws.
Task StartTask(const TaskFlags& flags);

}  // namespace cohort::train
