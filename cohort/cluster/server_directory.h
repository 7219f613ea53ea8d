// ServerDirectory: the servers of this process by target, so that a session on one of them needs no network to reach
// it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "cohort/core/mutex.h"

namespace cohort {

class ClusterNode;

// Thread-safe registry.
class ServerDirectory {
 public:
  static ServerDirectory& Global();
  void Add(const std::string& target, std::shared_ptr<ClusterNode> node);
  // Only where `node` is still the one under that target.
  void Remove(const std::string& target, const ClusterNode* node);
  // Null where no server of this process has the target.
  std::shared_ptr<ClusterNode> Find(const std::string& target);

 private:
  Mutex mu_;
  std::map<std::string, std::weak_ptr<ClusterNode>> servers_ COHORT_GUARDED_BY(mu_);
};

// Makes Session understand targets with a transport's scheme, "grpc://" and the like.
void RegisterClusterSessions();

}  // namespace cohort
