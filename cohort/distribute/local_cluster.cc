#include "cohort/distribute/local_cluster.h"

#include "cohort/cluster/tf_config.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::distribute {

LocalCluster::LocalCluster(const LocalClusterOptions& options) : options_(options) {
  const std::map<std::string, int> jobs = {{"chief", 1}, {"ps", options.ps}, {"worker", options.workers}};
  std::map<std::string, std::vector<std::string>> addresses;
  for (const auto& [job, tasks] : jobs) {
    if (tasks < 0) {
      throw InvalidArgumentError(
          StrCat("[distribute] LocalCluster expected at least 0 tasks of job '", job, "'; got ", tasks));
    }
    for (int i = 0; i < tasks; ++i) addresses[job].push_back(ports_.emplace_back().Address());
  }
  spec_ = ClusterSpec(addresses);
  for (const auto& [job, tasks] : jobs) {
    if (job == "chief") continue;
    for (int i = 0; i < tasks; ++i) {
      servers_[job].push_back(std::make_unique<Server>(spec_, job, i, options_.server));
    }
  }
}

LocalCluster::~LocalCluster() = default;

ClusterResolverPtr LocalCluster::resolver() const {
  return std::make_shared<SimpleClusterResolver>(spec_, "chief", 0, options_.server.protocol);
}

std::string LocalCluster::tf_config() const {
  std::string text = ClusterToJson(spec_);
  text.pop_back();
  return StrCat(text, R"(, "task": {"type": "chief", "index": 0}})");
}

std::unique_ptr<Server>& LocalCluster::Find(const std::string& job, int task) {
  const auto found = servers_.find(job);
  if (found != servers_.end() && task >= 0 && task < static_cast<int>(found->second.size())) {
    return found->second[static_cast<size_t>(task)];
  }
  throw NotFoundError(StrCat("[distribute] LocalCluster has no server ", TaskName(job, task), "; it has ",
                             options_.workers, " workers and ", options_.ps, " ps"));
}

Server& LocalCluster::server(const std::string& job, int task) {
  const std::unique_ptr<Server>& server = Find(job, task);
  if (server != nullptr) return *server;
  throw NotFoundError(StrCat("[distribute] the server of ", TaskName(job, task), " was stopped"));
}

void LocalCluster::Stop(const std::string& job, int task) { Find(job, task).reset(); }

void LocalCluster::Restart(const std::string& job, int task) {
  std::unique_ptr<Server>& server = Find(job, task);
  server.reset();
  server = std::make_unique<Server>(spec_, job, task, options_.server);
}

}  // namespace cohort::distribute
