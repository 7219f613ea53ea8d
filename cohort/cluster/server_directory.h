// ServerDirectory: the servers of this process by target. A session on one of them reaches it without a network.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"

namespace cohort {

class ClusterNode;

// A table that does not own the nodes. Thread-safe.
class ServerDirectory {
 public:
  static ServerDirectory& Global();
  void Add(const std::string& target, std::shared_ptr<ClusterNode> node);
  // Removes the target if its node is still `node`.
  void Remove(const std::string& target, const ClusterNode* node);
  // Returns the nodes of all servers that are not stopped.
  std::vector<std::shared_ptr<ClusterNode>> All() COHORT_EXCLUDES(mu_);
  // Returns nullptr if no server of this process has the target.
  std::shared_ptr<ClusterNode> Find(const std::string& target);

 private:
  Mutex mu_;
  std::map<std::string, std::weak_ptr<ClusterNode>> servers_ COHORT_GUARDED_BY(mu_);
};

// Writes the file "cluster.json" (cluster/status/cluster_file.h) into `folder`, for the cluster of the server of this
// process that has the target, or of the only server if the target is "". Does nothing if there is none or if `folder`
// is "". If the file cannot be written, logs a warning. Chiefs call it.
void WriteClusterFileOf(const std::string& target, const std::string& folder);

// Registers a session factory for the scheme of each transport, such as "grpc://".
void RegisterClusterSessions();

}  // namespace cohort
