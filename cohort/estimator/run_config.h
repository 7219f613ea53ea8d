// RunConfig: how an Estimator trains: its folder, checkpoints, summaries, and its task of a cluster. It follows
// TensorFlow's tf.estimator.RunConfig.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/runtime/session.h"

namespace cohort::estimator {

// The settings of an Estimator, with TensorFlow's names and defaults.
struct COHORT_EXPORT RunConfig {
  std::string model_dir;                  // "": a new temporary folder
  std::optional<int64_t> tf_random_seed;  // the graph's seed; nullopt: none
  int64_t save_summary_steps = 100;       // 0: no summaries
  // At most one of the two may be set. Neither is set: every 10 minutes. 0: no checkpoints while training runs.
  std::optional<int64_t> save_checkpoints_steps;
  std::optional<std::chrono::milliseconds> save_checkpoints_interval;
  SessionConfig session_config{.allow_soft_placement = true};
  int keep_checkpoint_max = 5;  // 0: all
  double keep_checkpoint_every_n_hours = 10000;
  int64_t log_step_count_steps = 100;  // 0: no log lines of loss and speed
  DeviceFunction device_fn;            // null: in a cluster with ps, variables go to the ps in turn
  // The longest delay with which a worker starts; nullopt: 60 s. Worker i waits for 5 (i + 1) seconds, but not longer.
  std::optional<std::chrono::milliseconds> experimental_max_worker_delay;
  std::chrono::milliseconds session_creation_timeout = std::chrono::hours(2);
  bool checkpoint_save_graph_def = true;  // write graph.pbtxt
  // The description of cluster and task in the form of TF_CONFIG. nullopt: the environment variable TF_CONFIG.
  std::optional<std::string> tf_config;
};

// The place of this process in the cluster.
struct COHORT_EXPORT TaskRole {
  ClusterSpec cluster_spec;  // empty: the process trains alone, or is an evaluator
  std::string task_type = "worker";
  int task_id = 0;
  int global_id_in_cluster = 0;
  std::string master;  // "grpc://host:port" of this task; "": a session of this process
  bool is_chief = true;
  int num_ps_replicas = 0;
  int num_worker_replicas = 1;  // the chief included
};

// Returns the role that TF_CONFIG gives to this process. Throws InvalidArgumentError if TF_CONFIG is not valid
// (ParseTFConfig), if a cluster has not exactly one chief (or "master"), if the task has no type or no index, or if the
// cluster has no such task. An evaluator need not be in the cluster.
COHORT_EXPORT TaskRole RoleOf(const RunConfig& config);

// Throws InvalidArgumentError, which names the field, for a negative number, or if both fields of checkpoints are set.
COHORT_EXPORT void CheckRunConfig(const RunConfig& config);

// Returns all fields as TensorFlow prints them: "{'_model_dir': '/tmp/x', '_tf_random_seed': None, ...}".
COHORT_EXPORT std::string ToString(const RunConfig& config, const TaskRole& role);

}  // namespace cohort::estimator
