// ReplicaDeviceSetter: the device function of between-graph replication, after TensorFlow's
// replica_device_setter. Variables go to the parameter servers, everything else to the worker that builds the
// graph:
//
//   DeviceScope replica(graph, train::ReplicaDeviceSetter({.worker_device = "/job:worker/task:1", .cluster =
//   cluster}));
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::train {

// Chooses the parameter server of a node that goes to one: a task index. Called once a node, in the order in
// which nodes are added.
using PsStrategy = std::function<int(const NodeDraft&)>;

// 0, 1, ..., num_tasks - 1, 0, ... Copies share the position. Thread-safe.
COHORT_EXPORT PsStrategy RoundRobin(int num_tasks);

// The load that a node puts on its task.
using PsLoad = std::function<double(const NodeDraft&)>;
// Bytes of the node's value (for a variable's handle: of the variable). Throws InvalidArgumentError for a
// shape that is not fully known.
COHORT_EXPORT double ByteSizeLoad(const NodeDraft& draft);
// The task with the least load so far, the first of equals; the node's load is then added to it. Copies share
// the loads. Thread-safe.
COHORT_EXPORT PsStrategy GreedyLoadBalancingStrategy(int num_tasks, PsLoad load);

// Ops that TensorFlow sends to parameter servers: variables and tables.
COHORT_EXPORT std::vector<std::string> DefaultPsOps();

struct COHORT_EXPORT ReplicaDeviceSetterOptions {
  int ps_tasks = 0;  // overridden by `cluster`
  std::string ps_device = "/job:ps";
  std::string worker_device = "/job:worker";
  bool merge_devices = true;           // false: a node that has a device already is left alone
  std::optional<ClusterSpec> cluster;  // ps_tasks is then the number of tasks of the job in ps_device
  std::vector<std::string> ps_ops = DefaultPsOps();
  PsStrategy ps_strategy;  // empty: RoundRobin(ps_tasks)
};

// The function leaves devices as they are when there are no parameter servers (ps_tasks 0, or a cluster
// without the job). What a node's inner device scopes say wins field by field; a variable that they put into
// another job takes no turn of the strategy. Updates of variables are not named here: they follow their
// variable by colocation. Throws InvalidArgumentError for devices that cannot be parsed and for a negative
// ps_tasks; the function throws it for a strategy that names no task.
COHORT_EXPORT DeviceFunction ReplicaDeviceSetter(const ReplicaDeviceSetterOptions& options);

}  // namespace cohort::train
