#include "tests/cluster/local_cluster.h"

#include "cohort/cluster/port_reservation.h"

namespace cohort::testing {

ServerOptions LocalCluster::FastOptions() {
  ServerOptions options;
  options.token = "local-cluster-test";
  options.heartbeat_interval = std::chrono::milliseconds(200);
  options.config.intra_op_parallelism_threads = 1;
  return options;
}

LocalCluster::LocalCluster(const std::map<std::string, int>& jobs, ServerOptions options)
    : options_(std::move(options)) {
  std::map<std::string, std::vector<std::string>> addresses;
  for (const auto& [job, count] : jobs) {
    for (int i = 0; i < count; ++i) {
      auto port = std::make_shared<PortReservation>();
      addresses[job].push_back(port->Address());
      reservations_.push_back(std::move(port));
    }
  }
  spec_ = ClusterSpec(addresses);
  for (const auto& [job, count] : jobs) {
    for (int i = 0; i < count; ++i) servers_[job].push_back(std::make_unique<Server>(spec_, job, i, options_));
  }
}

LocalCluster::~LocalCluster() = default;

const std::string& LocalCluster::target(const std::string& job, int task) {
  return targets_[job + std::to_string(task)] = server(job, task).Target();
}

void LocalCluster::Stop(const std::string& job, int task) { servers_.at(job).at(static_cast<size_t>(task)).reset(); }

void LocalCluster::Restart(const std::string& job, int task) {
  auto& server = servers_.at(job).at(static_cast<size_t>(task));
  server.reset();
  server = std::make_unique<Server>(spec_, job, task, options_);
}

ops::Variable VariableOn(Graph& g, const std::string& device, Output initial, const std::string& name) {
  const DeviceScope scope(g, device);
  return ops::Variable(g, initial, {.name = name});
}

}  // namespace cohort::testing
