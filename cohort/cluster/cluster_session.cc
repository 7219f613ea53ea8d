#include <cstdlib>
#include <filesystem>
#include <vector>

#include "cohort/cluster/client_node.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/cluster/status/cluster_file.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/cluster/tls/tls_files.h"
#include "cohort/cluster/token.h"
#include "cohort/core/deadline.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/runtime/session.h"

namespace cohort {
namespace {

constexpr std::string_view kAfterScheme = "://";

class ClusterTarget final : public ClusterView {
 public:
  // `owned`: a client node that ends with the session.
  ClusterTarget(std::shared_ptr<ClusterNode> node, DeviceName default_task, bool owned,
                std::function<Status()> interrupted)
      : node_(std::move(node)),
        default_task_(std::move(default_task)),
        owned_(owned),
        interrupted_(std::move(interrupted)) {}
  ~ClusterTarget() override {
    if (owned_) node_->Stop(Status(Code::kCancelled, "[session] the client's session was closed"));
  }

  DeviceName default_task() const override { return default_task_; }
  std::vector<DeviceName> tasks() const override {
    std::vector<DeviceName> all;
    for (const auto& [job, index] : node_->cluster().tasks()) all.push_back(FullTaskName(job, index));
    return all;
  }
  std::shared_ptr<TaskClient> Connect(const DeviceName& task, std::chrono::steady_clock::time_point deadline) override {
    return node_->steps().ClientFor(task, {.deadline = deadline, .interrupted = interrupted_});
  }

 private:
  std::shared_ptr<ClusterNode> node_;
  DeviceName default_task_;
  bool owned_;
  const std::function<Status()> interrupted_;  // SessionConfig::interrupted
};

std::unique_ptr<ClusterView> MakeClusterView(const std::string& target, const SessionConfig& config) {
  if (auto node = ServerDirectory::Global().Find(target)) {
    const DeviceName task = node->task();
    return std::make_unique<ClusterTarget>(std::move(node), task, false, config.interrupted);
  }
  const size_t scheme = target.find(kAfterScheme);
  const std::string protocol = target.substr(0, scheme);
  const std::string address = target.substr(scheme + kAfterScheme.size());
  ParseAddress(address);
  TransportOptions transport;
  transport.token = JobToken();
  transport.allow_insecure = config.allow_insecure;
  if (protocol != "in_process") transport.tls = FindTlsFiles(config.tls, "client", 0);
  auto node = MakeClientNode(protocol, transport);
  const auto connection = node->peers().ReachAddress(
      address, {.deadline = DeadlineAfter(config.connect_timeout), .interrupted = config.interrupted});
  node->peers().set_cluster(ParseTFConfig(connection->peer().cluster).cluster);
  return std::make_unique<ClusterTarget>(std::move(node), DeviceName::Parse(connection->peer().task), true,
                                         config.interrupted);
}

}  // namespace

ServerDirectory& ServerDirectory::Global() {
  static auto* const directory = new ServerDirectory;
  return *directory;
}

void ServerDirectory::Add(const std::string& target, std::shared_ptr<ClusterNode> node) {
  MutexLock lock(mu_);
  servers_[target] = node;
}

void ServerDirectory::Remove(const std::string& target, const ClusterNode* node) {
  MutexLock lock(mu_);
  const auto it = servers_.find(target);
  if (it != servers_.end() && it->second.lock().get() == node) servers_.erase(it);
}

std::vector<std::shared_ptr<ClusterNode>> ServerDirectory::All() {
  std::vector<std::shared_ptr<ClusterNode>> all;
  MutexLock lock(mu_);
  for (const auto& [target, node] : servers_) {
    if (auto found = node.lock()) all.push_back(std::move(found));
  }
  return all;
}

std::shared_ptr<ClusterNode> ServerDirectory::Find(const std::string& target) {
  MutexLock lock(mu_);
  const auto it = servers_.find(target);
  return it == servers_.end() ? nullptr : it->second.lock();
}

void WriteClusterFileOf(const std::string& target, const std::string& folder) {
  if (folder.empty()) return;
  std::vector<std::shared_ptr<ClusterNode>> nodes = ServerDirectory::Global().All();
  if (!target.empty()) nodes = {ServerDirectory::Global().Find(target)};
  const std::shared_ptr<ClusterNode> node = nodes.size() == 1 ? nodes.front() : nullptr;
  if (node == nullptr) return;
  ClusterFile file{.cluster = node->cluster()};
  if (const char* path = std::getenv("COHORT_TOKEN_FILE"); path != nullptr)
    file.token_file = std::filesystem::absolute(path).string();
  try {
    WriteClusterFile(folder, file);
  } catch (const Error& e) {
    LogWarning("cluster", "'cohort status --logdir=", folder, "' will not find this cluster: ", e.what());
  }
}

void RegisterClusterSessions() {
  for (const std::string& protocol : TransportProtocols()) {
    SessionFactories::Global().Register(StrCat(protocol, kAfterScheme), MakeClusterView);
  }
}

}  // namespace cohort
