// What a task's job means for training: who is chief, who counts as a worker (TensorFlow's
// multi_worker_util). Pure functions. `type` is "chief", "worker", "ps" or "evaluator"; an evaluator may be
// missing from the cluster.
#pragma once

#include <string>
#include <string_view>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/export.h"

namespace cohort {

// Throws InvalidArgumentError for a cluster that has other jobs than the four, more than one chief or
// evaluator; for a type that is none of the four or not in the cluster; for an index that the job does not
// have.
COHORT_EXPORT void CheckRole(const ClusterSpec& cluster, std::string_view type, int index);

// The chief saves, writes summaries and initializes. It is the job "chief", else worker 0; an evaluator is
// its own chief, and so is a program without a cluster. The functions below call CheckRole first (not with an
// empty cluster).
COHORT_EXPORT bool IsChief(const ClusterSpec& cluster, std::string_view type, int index);

// Tasks that train: chief and workers. For an evaluator: the evaluators. Throws InvalidArgumentError for a
// ps. 1 without a cluster.
COHORT_EXPORT int WorkerCount(const ClusterSpec& cluster, std::string_view type);

// 0-based place among the WorkerCount tasks: the chief is 0, workers follow. Throws InvalidArgumentError for
// a ps.
COHORT_EXPORT int IdInCluster(const ClusterSpec& cluster, std::string_view type, int index);

// Task that leads collectives, "/job:chief/replica:0/task:0" or "/job:worker/replica:0/task:0"; "" for an
// evaluator and without a cluster. Throws InvalidArgumentError for a cluster that has neither chief nor
// worker.
COHORT_EXPORT std::string CollectiveLeader(const ClusterSpec& cluster, std::string_view type, int index);

}  // namespace cohort
