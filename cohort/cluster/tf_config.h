// TF_CONFIG: an environment variable that describes the cluster to a process, as JSON.
//
//   {"cluster": {"ps": ["h0:2222"], "worker": ["h1:2222", "h2:2222"]}, "task": {"type": "worker", "index": 1}}
//
// The keys are TensorFlow's: cluster, task, rpc_layer, session_master, eval_session_master, environment. Other keys
// ("service", "job", ...) are ignored. But a key that looks like a misspelt form of one of these six is an error.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/export.h"

namespace cohort {

// The contents of TF_CONFIG.
struct COHORT_EXPORT TFConfig {
  ClusterSpec cluster;                   // empty if the program runs alone
  std::optional<std::string> task_type;  // "chief", "worker", "ps", "evaluator" or another job of the cluster
  std::optional<int> task_index;
  std::optional<std::string> rpc_layer;  // "grpc"
  std::optional<std::string> session_master;
  std::optional<std::string> eval_session_master;
  std::optional<std::string> environment;
};

// Returns the contents of `json`. Blank text counts as `{}`. Throws InvalidArgumentError, with the field and its value,
// - if the text is not JSON (with line, column and a mark below the place), has a key twice in one object, or has more
//   than 32 lists and objects in one another;
// - if a field has a wrong type, or a key looks like a misspelt one;
// - if a job name looks like a misspelt "ps", "worker", "chief", "evaluator" or "master";
// - if ParseAddress rejects an address, or two tasks have the same address (port 0 may occur several times);
// - if the cluster is not empty and has no job of the task's type, or if this job has no task of the task's index. But
//   the job "evaluator" need not be in the cluster;
// - if the cluster is not empty and the task has an index and no type.
COHORT_EXPORT TFConfig ParseTFConfig(std::string_view json);
// Returns {"cluster": {...}}, which ParseTFConfig can read.
COHORT_EXPORT std::string ClusterToJson(const ClusterSpec& cluster);

// Tells a program about its cluster and its own task, as TensorFlow's TFConfigClusterResolver does. Each method reads
// the environment (or the `json` of the constructor) again, so the object may be made before TF_CONFIG is set. Each
// method throws the errors of ParseTFConfig; the constructors do not. Thread-safe if no thread changes the environment.
// The program owns it.
class COHORT_EXPORT TFConfigClusterResolver final : public ClusterResolver {
 public:
  // Values that replace those of TF_CONFIG.
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

  ClusterSpec cluster_spec() const override;
  std::optional<std::string> task_type() const override;
  std::optional<int> task_id() const override;
  std::optional<std::string> rpc_layer() const override;
  // Returns session_master, if it is set, and otherwise what ClusterResolver::MasterOf returns.
  std::string MasterOf(std::optional<std::string> task_type, std::optional<int> task_id,
                       std::optional<std::string> rpc_layer) const override;

 private:
  TFConfig Read() const;

  std::optional<std::string> json_;  // nullopt: read the environment
  Options options_;
};

}  // namespace cohort
