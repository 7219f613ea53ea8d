// StatusService: tells other processes, and the metrics page, what the task of this process does; and asks other tasks.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "cohort/cluster/node_service.h"
#include "cohort/cluster/status/status_messages.h"
#include "cohort/cluster/status/status_window.h"
#include "cohort/core/mutex.h"
#include "cohort/core/thread_pool.h"

namespace cohort {

class ClusterNode;

// Handles the status messages of one process. A ClusterNode owns it. If the process runs a task, a thread of the
// service looks at the counters of the task once a second, and at its running steps 20 times a second while sessions
// use the task. So nothing is measured inside a step. The thread also answers requests; it waits for no step and no
// kernel. Thread-safe. OnStop ends it.
class StatusService final : public NodeService {
 public:
  // `has_task` is false in a client, which answers no request.
  StatusService(ClusterNode& node, bool has_task);
  ~StatusService() override;

  // Returns the figures of this process's task. Requires: the process has a task.
  TaskStatus Collect() COHORT_EXCLUDES(mu_);

  // Asks the peer of `connection` for its status and waits for the answer. Throws DeadlineExceededError if there is
  // none at `deadline`, and UnavailableError if the connection closes.
  StatusReply Ask(const std::shared_ptr<Connection>& connection, bool dump,
                  std::chrono::steady_clock::time_point deadline) COHORT_EXCLUDES(mu_);

  void OnMessage(const std::shared_ptr<Connection>& connection, Message message) override;
  void OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) override;
  void OnStop(const Status& why) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Request {
    std::shared_ptr<Connection> connection;
    StatusRequest request;
  };
  struct Pending {
    const Connection* connection;
    bool ended = false;
    Status status;
    StatusReply reply;
  };

  void HandleRequest(const std::shared_ptr<Connection>& connection, const Message& message) COHORT_EXCLUDES(mu_);
  void HandleReply(const Connection& connection, const Message& message) COHORT_EXCLUDES(mu_);
  void Run() COHORT_EXCLUDES(mu_);
  // Waits until `deadline` for a request. Returns false at the deadline and after OnStop.
  bool NextRequest(Clock::time_point deadline, Request* request) COHORT_EXCLUDES(mu_);
  bool stopped() COHORT_EXCLUDES(mu_);
  void Answer(const Request& request, std::string dump);
  // Looks at the running steps, and counts what they do.
  void Look() COHORT_EXCLUDES(mu_);
  // Reads the counters.
  StatusSample Sample() COHORT_EXCLUDES(mu_);
  void AddSteps(TaskStatus* status);
  void AddResources(TaskStatus* status);
  void AddPeers(TaskStatus* status);
  TaskActivity ActivityOf(const TaskStatus& status, bool stepped_lately);

  ClusterNode& node_;
  const bool has_task_;
  const Clock::time_point start_ = Clock::now();
  const std::string host_;
  const uint64_t restarts_;
  Mutex mu_;
  CondVar changed_;
  bool stopped_ COHORT_GUARDED_BY(mu_) = false;
  StatusWindow window_ COHORT_GUARDED_BY(mu_);
  std::array<int64_t, kStepUses> looks_ COHORT_GUARDED_BY(mu_){};
  std::deque<Request> requests_ COHORT_GUARDED_BY(mu_);
  size_t dumping_ COHORT_GUARDED_BY(mu_) = 0;                  // dumps that are wanted and not sent yet
  std::unique_ptr<ThreadPool> dumper_ COHORT_GUARDED_BY(mu_);  // made for the first dump, which may take seconds
  uint64_t next_request_ COHORT_GUARDED_BY(mu_) = 1;
  std::map<uint64_t, Pending*> pending_ COHORT_GUARDED_BY(mu_);  // questions of this process, by number
  std::thread thread_;
};

}  // namespace cohort
