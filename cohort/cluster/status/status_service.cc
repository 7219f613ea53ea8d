// The thread of the service (Run) does two things in turn: it answers the requests that OnMessage has queued, and it
// looks at the task at fixed times. Looks at the running steps are frequent and are only counted; a sample of all
// counters is kept once a second (StatusWindow). A dump may take seconds, so another thread makes it.
#include "cohort/cluster/status/status_service.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/status/task_state.h"
#include "cohort/cluster/steps/protocol.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/process/hung_thread.h"
#include "cohort/core/process/stop_signal.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/variable_resource.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kSampleInterval{1000};
constexpr Milliseconds kStepLookInterval{50};
// Requests beyond these wait in vain: the task is asked more often than it can answer.
constexpr size_t kMostRequests = 256;
constexpr size_t kMostDumps = 4;

std::string HostName() {
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

uint64_t RestartsOfThisTask() {
  const char* text = std::getenv("COHORT_RESTARTS");
  uint64_t count = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), count);
  return count;
}

Milliseconds Since(Clock::time_point time) {
  return std::max(Milliseconds(0), std::chrono::duration_cast<Milliseconds>(Clock::now() - time));
}

// Returns the value if `resource` is an initialized int64 scalar in host memory that counts steps: the global step of a
// training, or the iteration of a Keras optimizer.
std::optional<int64_t> GlobalStepOf(const VariableResource& variable) {
  const std::string& name = variable.name();
  const bool counts =
      name == "global_step" || name.ends_with("/global_step") || name == "iteration" || name.ends_with("/iteration");
  if (!counts || variable.dtype() != DType::kInt64 || !variable.initialized()) return std::nullopt;
  const Tensor value = variable.Read();
  if (!value.space().is_host() || !value.shape().IsScalar()) return std::nullopt;
  return value.scalar<int64_t>();
}

WaitStatus WaitOf(const RunningOperation& operation) {
  WaitStatus wait;
  wait.of_value = operation.wait == WaitKind::kValue && !operation.what.empty();
  wait.what = wait.of_value ? operation.what : StrCat(operation.op, " '", operation.node, "'");
  wait.task = operation.peer;
  return wait;
}

StepStatus StatusOf(const RunningStep& running) {
  StepStatus step;
  step.session = running.session;
  step.step = running.step;
  step.age = Since(running.since);
  step.without_progress = Since(running.progress);
  for (const RunningOperation& operation : running.operations) {
    if (!operation.waits()) continue;
    step.may_wait |= operation.wait == WaitKind::kOtherSteps || operation.wait == WaitKind::kGate;
    if (operation.wait != WaitKind::kWork) step.waits.push_back(WaitOf(operation));
  }
  return step;
}

}  // namespace

StatusService::StatusService(ClusterNode& node, bool has_task)
    : node_(node), has_task_(has_task), host_(HostName()), restarts_(RestartsOfThisTask()) {
  if (has_task) thread_ = std::thread([this] { Run(); });
}

StatusService::~StatusService() { OnStop(Status(Code::kCancelled, "[status] the task ends")); }

void StatusService::OnStop(const Status& why) {
  std::unique_ptr<ThreadPool> dumper;
  {
    MutexLock lock(mu_);
    stopped_ = true;
    for (auto& [number, pending] : pending_) {
      pending->ended = true;
      pending->status = why;
    }
    dumper = std::move(dumper_);
    changed_.NotifyAll();
  }
  dumper.reset();
  if (thread_.joinable()) thread_.join();
}

void StatusService::OnMessage(const std::shared_ptr<Connection>& connection, Message message) {
  if (static_cast<MessageKind>(message.kind) == MessageKind::kStatus) return HandleReply(*connection, message);
  HandleRequest(connection, message);
}

void StatusService::HandleRequest(const std::shared_ptr<Connection>& connection, const Message& message) {
  if (!has_task_) {
    throw InvalidArgumentError(
        StrCat("[protocol] ", node_.task().ToString(), " runs no task, but was asked for its status"));
  }
  const StatusRequest request = DecodeStatusRequest(message);
  MutexLock lock(mu_);
  if (stopped_ || requests_.size() >= kMostRequests) return;
  requests_.push_back({connection, request});
  changed_.NotifyAll();
}

void StatusService::HandleReply(const Connection& connection, const Message& message) {
  StatusReply reply = DecodeStatus(message);
  MutexLock lock(mu_);
  const auto found = pending_.find(reply.request);
  if (found == pending_.end() || found->second->connection != &connection) return;  // nobody waits for it any more
  found->second->reply = std::move(reply);
  found->second->ended = true;
  changed_.NotifyAll();
}

void StatusService::OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) {
  MutexLock lock(mu_);
  for (auto& [number, pending] : pending_) {
    if (pending->connection != connection.get() || pending->ended) continue;
    pending->status = why;
    pending->ended = true;
  }
  changed_.NotifyAll();
}

StatusReply StatusService::Ask(const std::shared_ptr<Connection>& connection, bool dump, Clock::time_point deadline) {
  Pending pending{.connection = connection.get()};
  uint64_t number = 0;
  {
    MutexLock lock(mu_);
    number = next_request_++;
    pending_[number] = &pending;
  }
  connection->Send(EncodeStatusRequest({number, dump}));
  MutexLock lock(mu_);
  // A connection that has closed before it was in pending_ is not reported by OnClosed.
  while (!pending.ended && !stopped_ && !connection->closed() && changed_.WaitUntil(mu_, deadline)) {
  }
  pending_.erase(number);
  if (!pending.ended) {
    if (connection->closed() || stopped_) throw UnavailableError(ClosedStatus(*connection).message());
    throw DeadlineExceededError(
        StrCat("[status] ", connection->peer().task, " (", connection->peer().address, ") did not answer in time"));
  }
  if (!pending.status.ok()) throw UnavailableError(pending.status.message());
  return std::move(pending.reply);
}

bool StatusService::stopped() {
  MutexLock lock(mu_);
  return stopped_;
}

bool StatusService::NextRequest(Clock::time_point deadline, Request* request) {
  MutexLock lock(mu_);
  while (requests_.empty()) {
    if (stopped_ || !changed_.WaitUntil(mu_, deadline)) return false;
  }
  *request = std::move(requests_.front());
  requests_.pop_front();
  return !stopped_;
}

void StatusService::Run() {
  SetThreadName("status");
  Clock::time_point next_sample = Clock::now();
  Clock::time_point next_look = next_sample;
  while (!stopped()) {
    const Clock::time_point now = Clock::now();
    if (now >= next_look) {
      Look();
      const bool used = node_.local_task()->num_executables() > 0;
      next_look = now + (used ? kStepLookInterval : kSampleInterval);
    }
    if (now >= next_sample) {
      const StatusSample sample = Sample();
      MutexLock lock(mu_);
      window_.Add(sample);
      next_sample = now + kSampleInterval;
    }
    Request request;
    if (!NextRequest(std::min(next_look, next_sample), &request)) continue;
    if (!request.request.dump) {
      Answer(request, "");
      continue;
    }
    MutexLock lock(mu_);
    if (stopped_ || dumping_ >= kMostDumps) continue;
    ++dumping_;
    if (dumper_ == nullptr) dumper_ = std::make_unique<ThreadPool>("status dump", 1);
    dumper_->Schedule([this, request] {
      Answer(request, DescribeTask(node_));
      MutexLock lock(mu_);
      --dumping_;
    });
  }
}

void StatusService::Answer(const Request& request, std::string dump) {
  try {
    request.connection->Send(EncodeStatus({request.request.request, Collect(), std::move(dump)}));
  } catch (const std::exception& e) {  // of a variable that is being changed; the next question gets an answer
    LogWarning("status", "cannot answer ", request.connection->peer().task, ": ", e.what());
  }
}

void StatusService::Look() {
  const auto use = static_cast<size_t>(UseOf(CollectRunningSteps(node_)));
  MutexLock lock(mu_);
  ++looks_[use];
}

StatusSample StatusService::Sample() {
  StatusSample sample;
  sample.time = Clock::now();
  sample.steps = node_.local_task()->num_steps();
  const PeerTable::Traffic traffic = node_.peers().traffic();
  sample.sent_bytes = traffic.sent;
  sample.received_bytes = traffic.received;
  for (const auto& [name, resource] : node_.local_task()->resources().List(ResourceManager::kDefaultContainer)) {
    const auto* variable = dynamic_cast<const VariableResource*>(resource.get());
    if (variable == nullptr) continue;
    if (const auto step = GlobalStepOf(*variable)) sample.global_step = std::max(sample.global_step.value_or(0), *step);
  }
  MutexLock lock(mu_);
  sample.looks = looks_;
  return sample;
}

TaskStatus StatusService::Collect() {
  TaskStatus status;
  status.task = node_.task().ToString();
  status.address = node_.identity().address;
  status.host = host_;
  status.pid = getpid();
  status.incarnation = node_.identity().incarnation;
  status.is_chief = node_.options().chief == status.task;
  status.uptime = Since(start_);
  status.restarts = restarts_;
  status.hang = HungThread::DescribeAll();
  AddSteps(&status);
  AddResources(&status);
  AddPeers(&status);
  const StatusSample now = Sample();
  bool stepped_lately;
  {
    MutexLock lock(mu_);
    window_.Fill(now, &status);
    stepped_lately = window_.SteppedLately(now);
  }
  status.activity = ActivityOf(status, stepped_lately);
  return status;
}

void StatusService::AddSteps(TaskStatus* status) {
  TaskState state = CollectTaskState(node_);
  status->memory_bytes = static_cast<uint64_t>(std::max<int64_t>(0, state.memory.resident_bytes));
  status->sessions = state.sessions.size();
  std::ranges::sort(state.steps, {}, &RunningStep::since);
  for (const RunningStep& step : state.steps) {
    if (status->running.size() < kMostListedSteps) {
      status->running.push_back(StatusOf(step));
    } else {
      ++status->more_running;
    }
  }
}

void StatusService::AddResources(TaskStatus* status) {
  for (const auto& [name, resource] : node_.local_task()->resources().List(ResourceManager::kDefaultContainer)) {
    const auto* variable = dynamic_cast<const VariableResource*>(resource.get());
    if (variable == nullptr) continue;
    ++status->variables;
    // The declared shape is read, because the lock of the value may be held by a long update.
    if (!variable->initialized() || !variable->shape().IsFullyDefined()) continue;
    status->variable_bytes += static_cast<uint64_t>(variable->shape().num_elements()) * DTypeSize(variable->dtype());
  }
}

void StatusService::AddPeers(TaskStatus* status) {
  for (const PeerTable::Peer& peer : node_.peers().ListPeers()) {
    if (status->peers.size() == kMostListedPeers) return;
    status->peers.push_back({peer.task, peer.address, peer.connected, peer.silent,
                             static_cast<uint64_t>(peer.traffic.sent), static_cast<uint64_t>(peer.traffic.received)});
  }
}

TaskActivity StatusService::ActivityOf(const TaskStatus& status, bool stepped_lately) {
  if (node_.chief().training_done() || StopSignal::Received()) return TaskActivity::kStopping;
  if (!status.running.empty() || stepped_lately) return TaskActivity::kRunning;
  if (status.sessions == 0 && node_.chief().WaitsForChief()) return TaskActivity::kWaitingForChief;
  return status.steps == 0 && status.sessions == 0 ? TaskActivity::kStarting : TaskActivity::kIdle;
}

}  // namespace cohort
