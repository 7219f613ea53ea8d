// StatusClient: asks the tasks of a running cluster what they do, from a program outside of the cluster.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/status/cluster_report.h"

namespace cohort {

class ClusterNode;

struct StatusClientOptions {
  std::chrono::milliseconds time_limit{5000};  // for each task's answer, and for the first contact
  bool allow_insecure = false;                 // allow connections without TLS to other hosts
  std::string token;                           // "" = JobToken()
};

// A client of one cluster. It keeps its connections between questions. Its functions may be called by one thread at a
// time. The destructor closes the connections.
class StatusClient {
 public:
  // Connects to the task at `address` ("host:port") and learns the cluster from it. Throws UnavailableError if no task
  // answers there within the time limit, PermissionDeniedError if the token is another one, and what JobToken and
  // ParseAddress throw.
  StatusClient(const std::string& address, const StatusClientOptions& options);
  // Makes a client of a cluster that is known. Connects to nobody yet. Throws what JobToken throws.
  StatusClient(const ClusterSpec& cluster, const StatusClientOptions& options);
  ~StatusClient();
  StatusClient(const StatusClient&) = delete;
  StatusClient& operator=(const StatusClient&) = delete;

  const ClusterSpec& cluster() const;
  // Asks all tasks at the same time. Returns when all have answered, at the latest at the end of the time limit. Does
  // not throw for a task that does not answer: the report says why.
  ClusterReport Ask();
  // Returns the dump of one task (DescribeTask). Throws NotFoundError if the cluster has no such task, and
  // UnavailableError or DeadlineExceededError if the task does not answer.
  std::string Dump(const std::string& job, int index);

 private:
  void AskTask(std::chrono::steady_clock::time_point deadline, TaskReport* report);

  const StatusClientOptions options_;
  std::shared_ptr<ClusterNode> node_;
};

}  // namespace cohort
