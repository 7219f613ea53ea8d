// LocalCluster: all servers of a small cluster in this process. They are connected over sockets on loopback, or without
// sockets (options.protocol).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/cluster/server.h"
#include "cohort/ops/variables.h"

namespace cohort::testing {

class LocalCluster {
 public:
  // `jobs` is the number of tasks of each job. The system chooses the ports. The default options have faster heartbeats
  // than those of a server.
  explicit LocalCluster(const std::map<std::string, int>& jobs, ServerOptions options = FastOptions());
  ~LocalCluster();

  Server& server(const std::string& job, int task) { return *servers_.at(job).at(static_cast<size_t>(task)); }
  const std::string& target(const std::string& job, int task);
  const ClusterSpec& spec() const { return spec_; }
  // Ends one server. The others see its connections close.
  void Stop(const std::string& job, int task);
  // Starts a new server, with a new incarnation, on the same address.
  void Restart(const std::string& job, int task);

  static ServerOptions FastOptions();

 private:
  ServerOptions options_;
  ClusterSpec spec_;
  std::vector<std::shared_ptr<void>> reservations_;
  std::map<std::string, std::vector<std::unique_ptr<Server>>> servers_;
  std::map<std::string, std::string> targets_;
};

// Makes a variable called `name` on `device`.
ops::Variable VariableOn(Graph& g, const std::string& device, Output initial, const std::string& name);

}  // namespace cohort::testing
