#include "cohort/cluster/status/status_client.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "cohort/cluster/client_node.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/cluster/tls/tls_files.h"
#include "cohort/cluster/token.h"
#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;
using Answer = TaskReport::Answer;

constexpr size_t kMostAskers = 256;  // threads

std::shared_ptr<ClusterNode> MakeStatusNode(const ClusterSpec& cluster, const StatusClientOptions& options) {
  TransportOptions transport;
  transport.token = options.token.empty() ? JobToken() : options.token;
  transport.allow_insecure = options.allow_insecure;
  transport.share_memory = false;
  transport.tls = FindTlsFiles({}, "client", 0);
  auto node = MakeClientNode("grpc", transport, /*asks_only=*/true);
  node->peers().set_cluster(cluster);
  return node;
}

}  // namespace

StatusClient::StatusClient(const std::string& address, const StatusClientOptions& options)
    : options_(options), node_(MakeStatusNode(ClusterSpec(), options)) {
  ParseAddress(address);
  const Clock::time_point deadline = DeadlineAfter(options_.time_limit);
  // A port where nobody listens is not waited for: the question is about a cluster that runs.
  const auto connection = node_->peers().ReachAddress(address, {.deadline = deadline, .if_refused = Clock::now()});
  node_->peers().set_cluster(ParseTFConfig(connection->peer().cluster).cluster);
}

StatusClient::StatusClient(const ClusterSpec& cluster, const StatusClientOptions& options)
    : options_(options), node_(MakeStatusNode(cluster, options)) {}

StatusClient::~StatusClient() { node_->Stop(Status(Code::kCancelled, "[status] the client ends")); }

const ClusterSpec& StatusClient::cluster() const { return node_->cluster(); }

void StatusClient::AskTask(Clock::time_point deadline, TaskReport* report) {
  try {
    Status why_not;
    const auto connection = node_->peers().TryReach(FullTaskName(report->job, report->index), deadline, &why_not);
    if (connection == nullptr) {
      report->answer = why_not.code() == Code::kDeadlineExceeded ? Answer::kSilent : Answer::kGone;
      report->why_not = why_not.message();
      return;
    }
    report->status = node_->status().Ask(connection, /*dump=*/false, deadline).status;
    report->answer = Answer::kStatus;
  } catch (const Error& e) {
    report->answer = e.code() == Code::kUnavailable        ? Answer::kGone
                     : e.code() == Code::kDeadlineExceeded ? Answer::kSilent
                                                           : Answer::kRefused;
    report->why_not = e.what();
  }
}

ClusterReport StatusClient::Ask() {
  ClusterReport report;
  report.time_limit = options_.time_limit;
  for (const auto& [job, index] : cluster().tasks()) {
    report.tasks.push_back({.job = job, .index = index, .address = cluster().task_address(job, index)});
  }
  const Clock::time_point deadline = DeadlineAfter(options_.time_limit);
  std::atomic<size_t> next{0};
  const auto ask = [&] {
    for (size_t task; (task = next.fetch_add(1)) < report.tasks.size();) AskTask(deadline, &report.tasks[task]);
  };
  std::vector<std::thread> askers;
  for (size_t i = 0; i < std::min(report.tasks.size(), kMostAskers); ++i) askers.emplace_back(ask);
  for (std::thread& asker : askers) asker.join();
  return report;
}

std::string StatusClient::Dump(const std::string& job, int index) {
  const DeviceName task = FullTaskName(job, index);
  const Clock::time_point deadline = DeadlineAfter(options_.time_limit);
  const auto connection = node_->peers().Reach(task, {.deadline = deadline, .if_refused = Clock::now()});
  return node_->status().Ask(connection, /*dump=*/true, deadline).dump;
}

}  // namespace cohort
