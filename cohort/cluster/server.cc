#include "cohort/cluster/server.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "cohort/cluster/client_node.h"
#include "cohort/cluster/launcher_link.h"
#include "cohort/cluster/roles.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/cluster/status/cluster_report.h"
#include "cohort/cluster/status/metrics_server.h"
#include "cohort/cluster/status/metrics_text.h"
#include "cohort/cluster/tls/tls_files.h"
#include "cohort/cluster/token.h"
#include "cohort/core/logging.h"
#include "cohort/core/process/line_buffering.h"
#include "cohort/core/process/time_limit.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/backend.h"
#include "cohort/device/files/file_access.h"
#include "cohort/runtime/program_activity.h"

namespace cohort {
namespace {

std::string OnlyJob(const ClusterSpec& cluster) {
  if (cluster.jobs().size() != 1) {
    throw InvalidArgumentError(StrCat("[server] Must specify an explicit job_name; ", cluster.ToString(), " has ",
                                      cluster.jobs().size(), " jobs"));
  }
  return cluster.jobs().front();
}

int OnlyTask(const ClusterSpec& cluster, const std::string& job) {
  if (cluster.num_tasks(job) != 1) {
    throw InvalidArgumentError(
        StrCat("[server] Must specify an explicit task_index; job '", job, "' has ", cluster.num_tasks(job), " tasks"));
  }
  return cluster.task_indices(job).front();
}

std::string ChiefOf(const ClusterSpec& cluster) {
  // "master" is an old name of the chief.
  const std::string job = cluster.has_job("chief") ? "chief" : cluster.has_job("master") ? "master" : "worker";
  return cluster.has_job(job) && cluster.has_task(job, 0) ? FullTaskName(job, 0).ToString() : "";
}

// Logs TensorFlow's line for each job, which people search for:
// "Initialize GrpcChannelCache for job worker -> {0 -> 172.17.0.2:12345, 1 -> 172.17.0.3:23456}".
void LogAddresses(const ClusterSpec& cluster) {
  for (const std::string& job : cluster.jobs()) {
    std::vector<std::string> tasks;
    for (const int task : cluster.task_indices(job)) {
      tasks.push_back(StrCat(task, " -> ", cluster.task_address(job, task)));
    }
    LogInfo("server", "Initialize GrpcChannelCache for job ", job, " -> {", StrJoin(tasks, ", "), "}");
  }
}

// Returns the port in COHORT_METRICS_PORT, or nullopt if it is not set.
std::optional<int> MetricsPortOfEnvironment() {
  const char* text = std::getenv("COHORT_METRICS_PORT");
  if (text == nullptr || *text == '\0') return std::nullopt;
  int port = -1;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, port);
  if (error != std::errc() || stop != end || port < 0 || port > 65535) {
    throw InvalidArgumentError(
        StrCat("[server] expected a port from 0 (any) to 65535 in COHORT_METRICS_PORT; got '", text, "'"));
  }
  return port;
}

// /healthz judges a task by itself, and a restart may follow from it. So a collective may wait for longer than in the
// verdict of `cohort status`, which sees the other tasks, too.
constexpr VerdictLimits kHealthLimits{.waiting = std::chrono::seconds(30), .computing = std::chrono::seconds(60)};

}  // namespace

Server::Server(const ClusterSpec& cluster, const std::string& job, int task, const ServerOptions& options)
    : cluster_(cluster),
      job_(job.empty() ? OnlyJob(cluster) : job),
      task_(task < 0 ? OnlyTask(cluster, job_) : task),
      options_(options) {
  if (!cluster_.has_job(job_) || !cluster_.has_task(job_, task_)) {
    throw InvalidArgumentError(
        StrCat("[server] there is no /job:", job_, "/task:", task_, " in ", cluster_.ToString(),
               job_ == "evaluator" ? "; an evaluator stands beside its cluster and has no server" : ""));
  }
  CheckTransportProtocol(options_.protocol);
  ApplyLineBuffering();
  WarnOfFieldsWithoutEffect(options_.config);
  orphan_timeout_ = TimeLimit(options_.orphan_timeout, "COHORT_ORPHAN_TIMEOUT", std::chrono::minutes(1));
  chief_timeout_ = TimeLimit(options_.chief_timeout, "COHORT_CHIEF_TIMEOUT", std::chrono::hours(2));
  if (options_.start) Start();
}

Server::~Server() { Stop(); }

void Server::Start() {
  if (node_ != nullptr) {
    LogInfo("server", "Server already started (target: ", target_, ")");
    return;
  }
  const DeviceName name = FullTaskName(job_, task_);
  auto resources = std::make_shared<TaskResources>();
  if (options_.update_observer != nullptr) {
    resources->update_gate.SetObserver(options_.update_observer, std::chrono::milliseconds(0));  // no step is there yet
  }
  auto devices = std::make_shared<DeviceSet>(BackendRegistry::Global().MakeDevices(
      name, options_.config.device_count, options_.config.intra_op_parallelism_threads, resources, "server"));

  TransportOptions transport;
  transport.token = options_.token.empty() ? JobToken() : options_.token;
  transport.allow_short_token = options_.allow_short_token;
  transport.handshake_timeout = options_.handshake_timeout;
  transport.max_connections = options_.max_connections;
  transport.max_handshakes = options_.max_handshakes;
  transport.max_handshakes_per_address = options_.max_handshakes_per_address;
  transport.max_failed_handshakes_per_second = options_.max_failed_handshakes_per_second;
  transport.heartbeat_interval = options_.heartbeat_interval;
  transport.silence_limit = options_.silence_limit;
  transport.allow_insecure = options_.allow_insecure;
  if (options_.protocol != "in_process") transport.tls = FindTlsFiles(options_.tls, job_, task_);
  transport.share_memory = options_.share_memory;
  NodeOptions node_options;
  node_options.chief = ChiefOf(cluster_);
  node_options.missing_interval = options_.missing_interval;
  node_options.reconnect_limit = options_.reconnect_limit;
  node_options.connect_timeout = options_.config.connect_timeout;
  node_options.make_client = [protocol = options_.protocol, transport] { return MakeClientNode(protocol, transport); };
  node_options.only_protected_collectives = !transport.tls.empty() && !options_.allow_insecure_collectives;
  auto node = std::make_shared<ClusterNode>(
      cluster_, name, std::move(devices), resources,
      [&](TransportHandler& handler) { return MakeTransport(options_.protocol, handler, transport); }, node_options);

  if (!options_.allow_path.empty()) {
    const ClientId self{name.ToString(), node->identity().incarnation};
    FileAccess::Install(resources->resources, std::make_shared<FileAccess>(self, options_.allow_path));
  }

  const std::string& own = cluster_.task_address(job_, task_);
  std::string bind = options_.bind;
  if (const char* variable = std::getenv("COHORT_BIND"); bind.empty() && variable != nullptr) bind = variable;
  const int port = node->Listen(bind.empty() ? own : bind);
  const HostPort spec = ParseAddress(own);
  const std::string host = spec.host.find(':') == std::string::npos ? spec.host : StrCat("[", spec.host, "]");
  const std::string address = StrCat(host, ":", spec.port != 0 ? spec.port : port);
  node->peers().SetAddress(address);
  node_ = std::move(node);
  target_ = StrCat(options_.protocol, "://", address);
  StartMetrics();
  ServerDirectory::Global().Add(target_, node_);
  AnswerLauncher();
  LogAddresses(cluster_);
  LogInfo("server", "Started server with target: ", target_, " (", name.ToString(), ")",
          transport.tls.empty() ? "" : ", with TLS");
}

void Server::StartMetrics() {
  const std::optional<int> port = options_.metrics_port ? options_.metrics_port : MetricsPortOfEnvironment();
  if (!port) return;
  StatusService* status = &node_->status();  // lives as long as node_
  try {
    metrics_ = std::make_unique<MetricsServer>(
        *port, MetricsPages{.metrics = [status] { return MetricsText(status->Collect()); },
                            .reason = [status] { return JudgeTask(status->Collect(), kHealthLimits); }});
    LogInfo("server", "Metrics of ", TaskName(job_, task_), ": http://127.0.0.1:", metrics_->port(), "/metrics");
  } catch (const UnavailableError& e) {
    if (options_.metrics_port) throw;
    LogWarning("server", TaskName(job_, task_), " has no metrics: ", e.what());
  }
}

std::optional<int> Server::metrics_port() const {
  return metrics_ == nullptr ? std::nullopt : std::optional(metrics_->port());
}

std::string Server::Target() const {
  if (node_ == nullptr) throw FailedPreconditionError("[server] the server is not started");
  return target_;
}

void Server::Join() {
  if (node_ == nullptr) throw FailedPreconditionError("[server] the server is not started");
  const ProgramActivity::Call call;
  node_->WaitForEnd({.orphan = orphan_timeout_, .chief = chief_timeout_});
}

void Server::ThrowIfChiefIsLost() {
  if (node_ != nullptr) node_->ThrowIfChiefIsLost(orphan_timeout_);
}

bool Server::training_done() const { return node_ != nullptr && node_->chief().training_done(); }

void Server::AnnounceDone() {
  if (node_ == nullptr) return;
  ProgramActivity::Global().OnTrainingDone();
  TellLauncherTrainingDone();
  node_->steps().TellTrainingDone();
}

void Server::Stop() {
  if (node_ == nullptr) return;
  metrics_.reset();
  ServerDirectory::Global().Remove(target_, node_.get());
  node_->Stop(Status(Code::kUnavailable, StrCat("[server] ", target_, " was stopped")));
}

const ClusterSpec& Server::cluster() const { return cluster_; }

bool Server::is_chief() const { return IsChief(cluster_, job_, task_); }

}  // namespace cohort
