// The step protocol, on the side of the master and on the side of the task. A master registers an executable with each
// task that has a partition (HandleRegister), starts steps (HandleStart) and gets their results (HandleReply). Tasks
// send each other the values of edges (ValuesToPeers, HandleValues). Work that may wait runs on a thread of
// SessionWork, never on a network thread.
#include "cohort/cluster/steps/step_service.h"

#include <thread>

#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/launcher_link.h"
#include "cohort/cluster/status/task_state.h"
#include "cohort/cluster/steps/remote_task.h"
#include "cohort/core/logging.h"
#include "cohort/core/process/hung_thread.h"
#include "cohort/core/str_cat.h"
#include "cohort/runtime/execution/step_trace.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPeerForValues{30};
constexpr std::chrono::seconds kPeerRefuses{3};  // a peer that the session's master is connected to
constexpr std::chrono::seconds kDevicesTimeout{60};
constexpr std::chrono::seconds kReachForDone{1};
constexpr std::chrono::seconds kConfirmDone{5};

ClientId IdOf(const TaskIdentity& peer) { return {peer.task, peer.incarnation}; }

// Sends the values of one executable's steps, each over the connection that its receiver had when the executable was
// registered. If that connection closes, the executable is cancelled, so that no other connection is ever needed.
class ValuesToPeers final : public ValueSender {
 public:
  // `connections`: by the executable's number of the task; null for a task that gets no values from here. `lost` is
  // called for a connection that has closed; it must not cancel on the caller's thread.
  ValuesToPeers(const ExecutableKey& key, std::vector<std::shared_ptr<Connection>> connections,
                std::function<void(const Connection&)> lost)
      : key_(key), connections_(std::move(connections)), lost_(std::move(lost)) {}

  void SendValues(int dst_task, int64_t step, std::vector<EdgeValue> values) override {
    Connection& connection = *connections_[static_cast<size_t>(dst_task)];
    if (connection.closed()) return lost_(connection);
    connection.Send(EncodeValues({key_, step}, std::move(values)));
  }

 private:
  const ExecutableKey key_;
  const std::vector<std::shared_ptr<Connection>> connections_;
  const std::function<void(const Connection&)> lost_;
};

// The completion of a step runs on a thread on which nothing catches an error. A result may be a handle, which cannot
// travel: the master then gets the error instead of the results.
void SendStepDone(Connection& connection, const StepRef& ref, const Status& status, std::vector<Tensor> rets,
                  const StepStats& stats) {
  Status failure;
  try {
    return connection.Send(EncodeStepDone(ref, status, std::move(rets), stats));
  } catch (...) {
    failure = Status::FromCurrentException();
  }
  try {
    connection.Send(EncodeStepDone(ref, failure, {}, {}));
  } catch (...) {
    connection.Close(LostPeer(connection.peer(), failure.ToString()));  // the master must not wait for ever
  }
}

}  // namespace

StepService::StepService(ClusterNode& node, std::shared_ptr<const DeviceSet> devices,
                         std::shared_ptr<TaskResources> resources, std::chrono::milliseconds reconnect_limit)
    : node_(node),
      leases_(
          reconnect_limit, [this](uint64_t session) { FreeSession(session); },
          [this](size_t count) { node_.chief().SetLeases(count); }),
      session_work_(std::make_unique<SessionWork>()) {
  if (devices == nullptr) return;
  local_ = std::make_shared<LocalTask>(IdOf(node.identity()), std::move(devices), std::move(resources),
                                       [this](const ExecutableSpec& spec) { return MakeSender(spec); });
  answers_ = std::make_unique<ThreadPool>("cohort-answers", 1);
}

StepService::~StepService() = default;

std::shared_ptr<TaskClient> StepService::ClientFor(const DeviceName& task, const DialLimits& limits) {
  if (local_ != nullptr && task == node_.task()) return local_;
  const std::shared_ptr<RemoteTask> remote = RemoteTaskOn(node_.peers().Reach(task, limits));
  remote->FetchDevices(std::min(limits.deadline, Clock::now() + kDevicesTimeout));
  return remote;
}

std::shared_ptr<RemoteTask> StepService::ClientAt(const std::string& address, Clock::time_point deadline) {
  return RemoteTaskOn(node_.peers().ReachAddress(address, {.deadline = deadline}));
}

std::shared_ptr<RemoteTask> StepService::RemoteTaskOn(const std::shared_ptr<Connection>& connection) {
  std::shared_ptr<RemoteTask> task;
  {
    MutexLock lock(mu_);
    const auto known = remote_tasks_.find(connection.get());
    task =
        known != remote_tasks_.end() ? known->second : std::make_shared<RemoteTask>(node_.weak_from_this(), connection);
    // OnClosed forgets the task of a closed connection; it may have been called before.
    if (!ended_ && !connection->closed()) remote_tasks_[connection.get()] = task;
  }
  // The connection may have closed before the task was made; OnClosed then told nobody.
  if (connection->closed()) task->OnLost(ClosedStatus(*connection));
  return task;
}

// The caller may end its process next, and what is still on its way would be lost. So the answers are waited for.
void StepService::TellTrainingDone() {
  std::vector<std::thread> tellers;  // a task that does not answer holds up no other
  for (const auto& [job, index] : node_.cluster().tasks()) {
    const DeviceName task = FullTaskName(job, index);
    if (task != node_.task()) tellers.emplace_back([this, task] { TellTrainingDoneTo(task); });
  }
  for (std::thread& teller : tellers) teller.join();
}

void StepService::TellTrainingDoneTo(const DeviceName& task) {
  try {
    RemoteTaskOn(node_.peers().Reach(task, {.deadline = Clock::now() + kReachForDone}))
        ->TellTrainingDone(Clock::now() + kConfirmDone);
  } catch (const DeadlineExceededError& e) {
    LogWarning("cluster", task.ToString(), " may not know that training is done: ", e.what());
  } catch (const Error& e) {
    LogDebug("cluster", "not told that training is done: ", e.what());  // it has ended, for whatever reason
  }
}

void StepService::OnPeerConnected(const TaskIdentity& peer) { leases_.OnConnected(IdOf(peer)); }

void StepService::OnPeerGone(const TaskIdentity& peer) { leases_.OnGone(IdOf(peer)); }

void StepService::OnTaskLost(const std::string& task, const Status& why) {
  if (local_ != nullptr) local_->TaskLost(task, why);
}

void StepService::OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) {
  std::shared_ptr<RemoteTask> remote;
  {
    MutexLock lock(mu_);
    const auto it = remote_tasks_.find(connection.get());
    if (it == remote_tasks_.end()) return;
    remote = std::move(it->second);
    remote_tasks_.erase(it);
  }
  remote->OnLost(why);
}

void StepService::OnStop(const Status& why) {
  if (local_ != nullptr) local_->CloseAll(why);
}

void StepService::End(const Status& why) {
  leases_.Stop();
  session_work_.reset();
  answers_.reset();
  std::map<const Connection*, std::shared_ptr<RemoteTask>> lost;
  {
    MutexLock lock(mu_);
    ended_ = true;
    lost.swap(remote_tasks_);
  }
  for (const auto& [connection, task] : lost) task->OnLost(why);
}

void StepService::FreeSession(uint64_t session) {
  // Closing waits for kernels that are under way.
  session_work_->Schedule(session, [this, session] {
    local_->CloseSession(session);
    leases_.Erase(session);
  });
}

void StepService::OnMessage(const std::shared_ptr<Connection>& connection, Message message) {
  if (HandleReply(connection, message)) return;
  if (local_ == nullptr) {
    throw InvalidArgumentError(
        StrCat("[protocol] ", node_.task().ToString(), " runs no task, but was sent message kind ", message.kind));
  }
  HandleRequest(connection, std::move(message));
}

bool StepService::HandleReply(const std::shared_ptr<Connection>& connection, Message& message) {
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::kStepDone: {
      RemoteTaskOn(connection)->OnStepDone(DecodeStepDone(message), std::move(message.tensors));
      return true;
    }
    case MessageKind::kDevices: RemoteTaskOn(connection)->OnDevices(DecodeDevices(message)); return true;
    case MessageKind::kRegistered: RemoteTaskOn(connection)->OnRegistered(DecodeRegistered(message)); return true;
    case MessageKind::kTrainingDoneAck:
      RemoteTaskOn(connection)->OnTrainingDoneAck(DecodeTrainingDoneAck(message));
      return true;
    case MessageKind::kStepReport: RemoteTaskOn(connection)->OnStepReport(DecodeStepReport(message)); return true;
    default: return false;
  }
}

void StepService::HandleRequest(const std::shared_ptr<Connection>& connection, Message message) {
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::kValues: return HandleValues(message);
    case MessageKind::kStartStep: return HandleStart(connection, std::move(message));
    case MessageKind::kCancelStep: {
      const CancelStepMessage cancel = DecodeCancelStep(message);
      return local_->CancelStep(cancel.ref.key, cancel.ref.step, cancel.why);
    }
    case MessageKind::kListDevices:
      return connection->Send(EncodeDevices(DecodeListDevices(message), local_->devices()));
    case MessageKind::kRegister: return HandleRegister(connection, message);
    case MessageKind::kCloseSession:
      leases_.End(DecodeCloseSession(message));
      return node_.peers().Wake();  // a dialer of this session gives up
    case MessageKind::kResetContainer: return HandleResetContainer(connection, message);
    case MessageKind::kTrainingDone: return HandleTrainingDone(connection, message);
    case MessageKind::kAskAboutStep: return HandleQuestion(connection, message);
    default: throw InvalidArgumentError(StrCat("[protocol] unknown message kind ", message.kind));
  }
}

// In a cluster without a chief, any task of the cluster may take its place.
bool StepService::IsChief(const std::string& task) const {
  const std::string& chief = node_.options().chief;
  if (!chief.empty()) return task == chief;
  const DeviceName name = DeviceName::Parse(task);
  return name.job && name.task && node_.cluster().has_task(*name.job, *name.task);
}

void StepService::HandleResetContainer(const std::shared_ptr<Connection>& connection, const Message& message) {
  const std::string& peer = connection->peer().task;
  const DeviceName name = DeviceName::Parse(peer);
  const bool is_client = name.job && !node_.cluster().has_job(*name.job);
  if (!is_client && !IsChief(peer)) {
    throw PermissionDeniedError(StrCat("[protocol] expected the chief or a client to reset a container of ",
                                       node_.task().ToString(), "; got the request from ", peer,
                                       "; call Session::Reset on the chief or in a program outside the cluster"));
  }
  const std::string container = DecodeResetContainer(message);
  if (container.starts_with('_')) {
    throw PermissionDeniedError(StrCat("[protocol] expected a container of sessions; got '", container, "' from ", peer,
                                       ", which belongs to the task"));
  }
  local_->ResetContainer(container);
}

void StepService::HandleTrainingDone(const std::shared_ptr<Connection>& connection, const Message& message) {
  if (!IsChief(connection->peer().task)) {
    throw PermissionDeniedError(StrCat("[protocol] expected the chief ", node_.options().chief, " to tell ",
                                       node_.task().ToString(), " that training is done; got it from ",
                                       connection->peer().task, "; call AnnounceDone on the chief"));
  }
  LogInfo("cluster", node_.task().ToString(), ": ", connection->peer().task, " says that training is done");
  // The answer leaves before anything ends, and so before this side's goodbye.
  connection->Send(EncodeTrainingDoneAck(DecodeTrainingDone(message)));
  node_.chief().OnTrainingDone();
}

void StepService::HandleRegister(const std::shared_ptr<Connection>& connection, const Message& message) {
  auto request = std::make_shared<RegisterRequest>(DecodeRegister(message));
  const uint64_t session = request->spec.key.session;
  request->spec.client = IdOf(connection->peer());
  // A process reaches its own task without a connection, and LocalTask takes a client without a name for itself.
  if (request->spec.client == IdOf(node_.identity()) || request->spec.client == ClientId()) {
    throw PermissionDeniedError(StrCat("[protocol] a peer says that it is this process, ", node_.task().ToString()));
  }
  leases_.Hold(session, request->spec.client);
  session_work_->Schedule(session, [this, connection, request] { Register(connection, std::move(*request)); });
}

void StepService::Register(const std::shared_ptr<Connection>& connection, RegisterRequest request) {
  Status status;
  try {
    node_.peers().CheckFirstOfItsTask(*connection);
    local_->Register(std::move(request.spec));
  } catch (...) {
    status = Status::FromCurrentException();
  }
  connection->Send(EncodeRegistered(request.request, status));
}

Status StepService::WhyToGiveUp(uint64_t session) {
  if (!leases_.HasEnded(session)) return {};
  return Status(Code::kCancelled, StrCat("[cluster] the session ended while ", node_.task().ToString(),
                                         " waited for a task that its steps send values to"));
}

// The receivers are connected now, so that no step has to wait for that.
std::unique_ptr<ValueSender> StepService::MakeSender(const ExecutableSpec& spec) {
  const ExecutableKey key = spec.key;
  const Clock::time_point now = Clock::now();
  const DialLimits limits{.deadline = now + kPeerForValues,
                          .if_refused = now + kPeerRefuses,
                          .interrupted = [this, session = key.session] { return WhyToGiveUp(session); }};
  std::vector<std::shared_ptr<Connection>> connections(spec.tasks.size());
  for (const EdgeRoute& edge : spec.edges) {
    if (edge.src_task != spec.self || edge.dst_task == spec.self) continue;
    const auto receiver = static_cast<size_t>(edge.dst_task);
    if (connections[receiver] != nullptr) continue;
    connections[receiver] = node_.peers().Reach(DeviceName::Parse(spec.tasks[receiver]), limits);
  }
  return std::make_unique<ValuesToPeers>(key, std::move(connections), [this, key](const Connection& lost) {
    const Status why = ClosedStatus(lost);
    session_work_->Schedule(key.session, [this, key, why] {
      if (const auto executable = local_->Find(key)) executable->CancelAll(why);
    });
  });
}

void StepService::HandleStart(const std::shared_ptr<Connection>& connection, Message message) {
  const StartStepMessage start = DecodeStartStep(message);
  const auto trace = start.traced ? std::make_shared<StepTrace>() : nullptr;
  StepStart step{start.ref.step, start.closure, trace};
  step.repeat = start.repeat;
  local_->StartStep(start.ref.key, step, std::move(message.tensors), Executor::Mode::kNetwork,
                    [connection, ref = start.ref, trace](const Status& status, std::vector<Tensor> rets) {
                      const StepStats stats = trace != nullptr ? trace->Take() : StepStats();
                      SendStepDone(*connection, ref, status, std::move(rets), stats);
                    });
}

void StepService::HandleQuestion(const std::shared_ptr<Connection>& connection, const Message& message) {
  answers_->Schedule([this, connection, question = DecodeAskAboutStep(message)] {
    std::vector<RunningStep> running = CollectRunningSteps(node_);
    if (question.session == 0) running.push_back(CollectivesWithoutStep(node_, running));
    StepReport report =
        ReportOn(question.session, question.step, local_->name(), std::move(running), question.with_stacks);
    if (question.session == 0) {
      report.hang = HungThread::DescribeAll();
      report.launcher_ends_it = HasLauncher();
    }
    for (const auto& other : node_.peers().Connections()) {
      report.step.stamp += IncomingStamp(*other, question.session, question.step);
    }
    connection->Send(EncodeStepReport(question.request, report));
  });
}

void StepService::HandleValues(const Message& message) {
  const ValuesMessage values = DecodeValues(message);
  for (size_t i = 0; i < values.edges.size(); ++i) {
    local_->Deliver(values.ref.key, values.ref.step, values.edges[i], message.tensors[i]);
  }
}

}  // namespace cohort
