// TF_CONFIG: a process's view of its cluster, as JSON in an environment variable.
//
//   {"cluster": {"ps": ["h0:2222"], "worker": ["h1:2222", "h2:2222"]}, "task": {"type": "worker", "index": 1}}
//
// The keys are TensorFlow's: cluster, task, rpc_layer, session_master, eval_session_master, environment. Other keys
// ("service", "job", ...) are ignored, but a key that looks like a misspelt one of these is an error.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/export.h"

namespace cohort {

struct COHORT_EXPORT TFConfig {
  ClusterSpec cluster;                   // empty where there is none: a program on its own
  std::optional<std::string> task_type;  // "chief", "worker", "ps", "evaluator" or another job of the cluster
  std::optional<int> task_index;
  std::optional<std::string> rpc_layer;  // "grpc"
  std::optional<std::string> session_master;
  std::optional<std::string> eval_session_master;
  std::optional<std::string> environment;
};

// Reads the text; blank text counts as `{}`. Throws InvalidArgumentError that names the field and its value for
// - text that is not JSON (with line, column and a caret below the place), or a key given twice in one object;
// - a field of a wrong type, or a key that looks like a misspelt one;
// - a job name that looks like a misspelt "ps", "worker", "chief" or "evaluator";
// - an address that ParseAddress refuses, or that two tasks share (port 0 may be shared);
// - with a cluster: a task type that is none of its jobs, or an index that its job does not have. An evaluator need not
//   be a job of the cluster.
COHORT_EXPORT TFConfig ParseTFConfig(std::string_view json);
// {"cluster": {...}}, which ParseTFConfig reads back.
COHORT_EXPORT std::string ClusterToJson(const ClusterSpec& cluster);

// As tf.distribute.cluster_resolver.TFConfigClusterResolver: reads the environment anew on each access, so
// that it can be made before TF_CONFIG is set. Every access throws what ParseTFConfig throws. Thread-safe as
// getenv is: nobody may change the environment meanwhile.
class COHORT_EXPORT TFConfigClusterResolver {
 public:
  // What is set here wins over TF_CONFIG.
  struct Options {
    std::optional<std::string> task_type;
    std::optional<int> task_id;
    std::optional<std::string> rpc_layer;
  };

  TFConfigClusterResolver() = default;
  explicit TFConfigClusterResolver(Options options);
  // Reads `json` instead of the environment.
  explicit TFConfigClusterResolver(std::string json);
  TFConfigClusterResolver(std::string json, Options options);

  ClusterSpec cluster_spec() const;
  std::optional<std::string> task_type() const;
  std::optional<int> task_id() const;
  std::optional<std::string> rpc_layer() const;
  // What a Session of this program connects to: session_master where given; "" (in process) without a cluster
  // and for a cluster of one task; else the task's address with "rpc_layer://" in front where there is an
  // rpc_layer. Arguments win over the resolver's own. Throws InvalidArgumentError where type or index are
  // missing, NotFoundError where the cluster has no such task.
  std::string master(std::optional<std::string> task_type = {}, std::optional<int> task_id = {},
                     std::optional<std::string> rpc_layer = {}) const;

 private:
  TFConfig Read() const;

  std::optional<std::string> json_;  // nullopt: the environment
  Options options_;
};

}  // namespace cohort
