// ClusterResolver: tells a program which tasks its cluster has, and which of them the program is.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/export.h"

namespace cohort {

// The interface of TensorFlow's cluster resolvers. The program owns a resolver; functions that keep one share it by
// shared_ptr. Const methods are thread-safe. They may throw if the description of the cluster is wrong or missing.
class COHORT_EXPORT ClusterResolver {
 public:
  virtual ~ClusterResolver() = default;

  // Returns the tasks of the cluster. It is empty if the program runs alone.
  virtual ClusterSpec cluster_spec() const = 0;
  // Return the job and the index of this task, or nullopt if they are not known.
  virtual std::optional<std::string> task_type() const = 0;
  virtual std::optional<int> task_id() const = 0;
  // Returns the protocol in front of addresses ("grpc"), or nullopt if there is none.
  virtual std::optional<std::string> rpc_layer() const { return std::nullopt; }
  // Returns the target to which a Session of this program connects:
  // - "" (a session in this process) if the cluster has no job, or if it has one job with one task;
  // - otherwise the address of the task with this type and id, with "rpc_layer://" in front if there is an rpc_layer.
  // Arguments that are nullopt are replaced by the resolver's own values. In the second case, throws
  // InvalidArgumentError if the type or the id is missing, and NotFoundError if the cluster has no such task.
  virtual std::string MasterOf(std::optional<std::string> task_type, std::optional<int> task_id,
                               std::optional<std::string> rpc_layer) const;
  // Returns what MasterOf returns.
  std::string master(std::optional<std::string> task_type = {}, std::optional<int> task_id = {},
                     std::optional<std::string> rpc_layer = {}) const {
    return MasterOf(std::move(task_type), task_id, std::move(rpc_layer));
  }
};

using ClusterResolverPtr = std::shared_ptr<const ClusterResolver>;

// A resolver that knows the values of its constructor.
class COHORT_EXPORT SimpleClusterResolver final : public ClusterResolver {
 public:
  explicit SimpleClusterResolver(ClusterSpec cluster, std::optional<std::string> task_type = {},
                                 std::optional<int> task_id = {}, std::optional<std::string> rpc_layer = {})
      : cluster_(std::move(cluster)),
        task_type_(std::move(task_type)),
        task_id_(task_id),
        rpc_layer_(std::move(rpc_layer)) {}

  ClusterSpec cluster_spec() const override { return cluster_; }
  std::optional<std::string> task_type() const override { return task_type_; }
  std::optional<int> task_id() const override { return task_id_; }
  std::optional<std::string> rpc_layer() const override { return rpc_layer_; }

 private:
  const ClusterSpec cluster_;
  const std::optional<std::string> task_type_;
  const std::optional<int> task_id_;
  const std::optional<std::string> rpc_layer_;
};

}  // namespace cohort
