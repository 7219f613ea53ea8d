// Roles: says which task is the chief, and which tasks count as workers, from the jobs of a cluster (as in
// TensorFlow's multi_worker_util). Pure functions. `type` is "chief", "worker", "ps" or "evaluator". An evaluator need
// not be in the cluster.
#pragma once

#include <string>
#include <string_view>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/export.h"

namespace cohort {

// Throws InvalidArgumentError if the cluster has another job than these four, or more than one chief or evaluator; if
// `type` is not one of the four or not in the cluster; or if the job has no such index.
COHORT_EXPORT void CheckRole(const ClusterSpec& cluster, std::string_view type, int index);

// Returns whether the task is the chief, which initializes, saves and writes summaries. The chief is the job "chief",
// or worker 0 if there is no such job. An evaluator is its own chief, and so is a program without a cluster. Unless the
// cluster is empty, this function and IdInCluster and CollectiveLeader call CheckRole first.
COHORT_EXPORT bool IsChief(const ClusterSpec& cluster, std::string_view type, int index);

// Returns the number of tasks that train: chief and workers. For an evaluator, returns the number of evaluators, at
// least 1. Returns 1 if the cluster is empty. Throws InvalidArgumentError for a ps.
COHORT_EXPORT int WorkerCount(const ClusterSpec& cluster, std::string_view type);

// Returns the position of the task among the tasks that WorkerCount counts: the chief is 0, and workers follow. Throws
// InvalidArgumentError for a ps.
COHORT_EXPORT int IdInCluster(const ClusterSpec& cluster, std::string_view type, int index);

// Returns the task that leads collectives: "/job:chief/replica:0/task:0" or "/job:worker/replica:0/task:0". Returns ""
// for an evaluator and if the cluster is empty. Throws InvalidArgumentError if the cluster has neither chief nor
// worker.
COHORT_EXPORT std::string CollectiveLeader(const ClusterSpec& cluster, std::string_view type, int index);

}  // namespace cohort
