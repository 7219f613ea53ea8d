// ReplicaDeviceSetter: a device function for between-graph replication, where each worker builds its own graph. It
// follows TensorFlow's replica_device_setter. Variables go to the parameter servers, everything else to the worker:
//
//   DeviceScope replica(graph, train::ReplicaDeviceSetter({.worker_device = "/job:worker/task:1",
//                                                          .cluster = cluster}));
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::train {

// A function that returns the index of the parameter server (task) for a node. The device function calls it once for
// each node that goes to a parameter server, in the order in which nodes are added.
using PsStrategy = std::function<int(const NodeDraft&)>;

// Returns a strategy that chooses 0, 1, ..., num_tasks - 1, 0, ... Copies of the strategy continue one sequence
// together. Thread-safe. Throws InvalidArgumentError if num_tasks is less than 1.
COHORT_EXPORT PsStrategy RoundRobin(int num_tasks);

// A function that returns the load that a node puts on its task.
using PsLoad = std::function<double(const NodeDraft&)>;
// Returns the size in bytes of the node's value; for a variable's handle, the size of the variable. Throws
// InvalidArgumentError if the shape is not fully known.
COHORT_EXPORT double ByteSizeLoad(const NodeDraft& draft);
// Returns a strategy that chooses the task with the smallest load so far, and of several such tasks the first. It then
// adds the node's load to that task. Copies of the strategy share the loads. Thread-safe if `load` is. Throws
// InvalidArgumentError if num_tasks is less than 1.
COHORT_EXPORT PsStrategy GreedyLoadBalancingStrategy(int num_tasks, PsLoad load);

// Returns the ops that TensorFlow puts on parameter servers: variables and tables.
COHORT_EXPORT std::vector<std::string> DefaultPsOps();

// The options of ReplicaDeviceSetter, with TensorFlow's names.
struct COHORT_EXPORT ReplicaDeviceSetterOptions {
  int ps_tasks = 0;  // number of parameter servers; not used if `cluster` is given
  std::string ps_device = "/job:ps";
  std::string worker_device = "/job:worker";
  bool merge_devices = true;           // false: a node that already has a device keeps it
  std::optional<ClusterSpec> cluster;  // if given, its tasks of ps_device's job are the parameter servers
  std::vector<std::string> ps_ops = DefaultPsOps();
  PsStrategy ps_strategy;  // empty: RoundRobin(ps_tasks)
};

// Returns the device function. Without parameter servers (ps_tasks is 0, or the cluster does not have the job), the
// function leaves devices as they are. Device scopes inside its scope have priority, field by field. If such a
// scope puts a variable into another job, the strategy is not called. Updates of variables are placed with their
// variable, by colocation. Throws InvalidArgumentError for a device that cannot be parsed and for a negative ps_tasks.
// The returned function throws InvalidArgumentError if the strategy chooses a task that does not exist.
COHORT_EXPORT DeviceFunction ReplicaDeviceSetter(const ReplicaDeviceSetterOptions& options);

}  // namespace cohort::train
