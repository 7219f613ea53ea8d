// LocalCluster: workers and parameter servers in this process, for trying out ParameterServerStrategy and for tests.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/cluster/port_reservation.h"
#include "cohort/cluster/server.h"
#include "cohort/core/export.h"

namespace cohort::distribute {

struct COHORT_EXPORT LocalClusterOptions {
  int workers = 1;
  int ps = 1;
  ServerOptions server = {};  // of each server; `start` has to be true
};

// The servers of a cluster with the jobs "worker" and "ps", on free ports of this machine's loopback. The cluster also
// has an address for the job "chief", whose server a ParameterServerStrategy starts. The program owns it; sessions and
// strategies on the cluster should end before it. Thread-safe, except Stop and Restart.
class COHORT_EXPORT LocalCluster {
 public:
  // Starts the servers. Throws InvalidArgumentError if a number of tasks is negative, and the errors of Server.
  explicit LocalCluster(const LocalClusterOptions& options = {});
  // Ends the servers.
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  const ClusterSpec& cluster_spec() const { return spec_; }
  // Returns a resolver for the chief of the cluster.
  ClusterResolverPtr resolver() const;
  // Returns {"cluster": ..., "task": chief 0}, which is the TF_CONFIG of the chief.
  std::string tf_config() const;
  // Returns a server. `job` is "worker" or "ps". Throws NotFoundError if there is none, or if it is stopped.
  Server& server(const std::string& job, int task);
  // Ends one server. The others see that its connections close. Throws NotFoundError if there is none.
  void Stop(const std::string& job, int task);
  // Starts a new server, with a new incarnation and without variables, on the address of the old one, which ends first.
  void Restart(const std::string& job, int task);

 private:
  std::unique_ptr<Server>& Find(const std::string& job, int task);

  const LocalClusterOptions options_;
  std::vector<PortReservation> ports_;
  ClusterSpec spec_;
  std::map<std::string, std::vector<std::unique_ptr<Server>>> servers_;
};

}  // namespace cohort::distribute
