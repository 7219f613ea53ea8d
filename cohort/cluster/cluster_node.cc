#include "cohort/cluster/cluster_node.h"

#include <algorithm>
#include <thread>

#include "cohort/cluster/remote_task.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFirstRetry{10};
constexpr std::chrono::milliseconds kLastRetry{500};
constexpr std::chrono::seconds kPeerForValues{30};
constexpr std::chrono::seconds kPeerRefuses{3};    // one that the session's master has a connection to
constexpr std::chrono::seconds kFormerLeaves{10};  // twice the usual silence limit
constexpr std::chrono::seconds kDevicesTimeout{60};
constexpr std::chrono::seconds kReachForDone{1};
constexpr std::chrono::seconds kLookForChief{1};
// An attempt that the caller's deadline ended sooner tells nothing about the peer.
constexpr std::chrono::milliseconds kTellingAttempt{500};
constexpr std::chrono::seconds kConfirmDone{5};

// To the millisecond, for people to read.
double SecondsBetween(Clock::time_point start, Clock::time_point end) {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(end - start).count()) / 1000.0;
}

Status ClosedStatus(const Connection& connection) {
  const TaskIdentity& peer = connection.peer();
  return Status(Code::kUnavailable, StrCat("[cluster] ", peer.task, peer.address.empty() ? "" : " (", peer.address,
                                           peer.address.empty() ? "" : ")", " closed the connection"));
}

}  // namespace

ClusterNode::ClusterNode(ClusterSpec cluster, DeviceName task, std::shared_ptr<const DeviceSet> devices,
                         std::shared_ptr<TaskResources> resources, const TransportMaker& make_transport,
                         std::string chief)
    : cluster_(std::move(cluster)),
      task_(std::move(task)),
      chief_name_(std::move(chief)),
      chief_(task_.ToString(), chief_name_),
      clerk_(std::make_unique<SessionWork>()) {
  identity_.task = task_.ToString();
  identity_.incarnation = NewIncarnation();
  identity_.op_fingerprint = OpRegistry::Global().Fingerprint();
  identity_.protocol_version = kProtocolVersion;
  identity_.cluster = ClusterToJson(cluster_);
  if (devices != nullptr) {
    local_ = std::make_shared<LocalTask>(
        task_.ToString(), std::move(devices), std::move(resources),
        [this](const ExecutableKey& key, const std::string& dst_task, int64_t step, std::vector<EdgeValue> values) {
          SendValues(key, dst_task, step, std::move(values));
        });
  }
  for (const NodeServices::Entry& entry : NodeServices::Global().entries()) {
    services_.push_back({entry.first_kind, entry.last_kind, entry.make(*this)});
  }
  transport_ = make_transport(*this);
}

ClusterNode::~ClusterNode() { Stop(Status(Code::kCancelled, StrCat("[cluster] ", task_.ToString(), " ends"))); }

int ClusterNode::Listen(const std::string& address) { return transport_->Listen(address); }

void ClusterNode::Announce(const std::string& address) {
  identity_.address = address;
  transport_->SetIdentity(identity_);
}

void ClusterNode::Stop(const Status& why) {
  {
    MutexLock lock(mu_);
    if (stopped_) return;
    stopped_ = true;
  }
  changed_.NotifyAll();
  chief_.Stop();
  // What waits for peers lets its steps end.
  for (const Service& entry : services_) entry.service->OnStop(why);
  if (local_ != nullptr) local_->CloseAll(why);
  transport_->Shutdown(AfterWhom());
  clerk_.reset();
  std::map<const Connection*, std::shared_ptr<RemoteTask>> lost;
  {
    MutexLock lock(mu_);
    connections_.clear();
    lost.swap(remote_tasks_);
    leases_.clear();
    chief_.SetLeases(0);
  }
  for (const auto& [connection, task] : lost) task->OnLost(why);  // sessions of this process wait for them
}

std::string ClusterNode::AfterWhom() {
  MutexLock lock(mu_);
  const auto first = std::min_element(gone_since_.begin(), gone_since_.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  if (first == gone_since_.end()) return "";
  return StrCat("; ", first->first, " had gone ", SecondsBetween(first->second, Clock::now()), " s before");
}

std::shared_ptr<Connection> ClusterNode::FindConnection(const std::string& task) {
  MutexLock lock(mu_);
  const auto [begin, end] = connections_.equal_range(task);
  for (auto it = begin; it != end; ++it) {
    if (!it->second->closed()) return it->second;
  }
  return nullptr;
}

void ClusterNode::Remember(const std::shared_ptr<Connection>& connection) {
  {
    MutexLock lock(mu_);
    if (stopped_) return;
    connections_.emplace(connection->peer().task, connection);
    gone_since_.erase(connection->peer().task);
    chief_.OnConnected(connection->peer().task);
  }
  changed_.NotifyAll();
  // It may have been closed before it was remembered; OnClosed then found nothing to forget.
  if (connection->closed()) OnClosed(connection, ClosedStatus(*connection));
}

std::shared_ptr<Connection> ClusterNode::Reach(const DeviceName& task, Clock::time_point deadline) {
  return ReachTask(task, {.deadline = deadline});
}

std::shared_ptr<Connection> ClusterNode::ReachTask(const DeviceName& task, const Patience& patience) {
  const std::string name = task.ToString();
  if (auto found = FindConnection(name)) return found;
  return DialUntil(AddressOf(task), name, patience);
}

std::shared_ptr<Connection> ClusterNode::TryReach(const DeviceName& task, Clock::time_point deadline) {
  const std::string name = task.ToString();
  if (auto found = FindConnection(name)) return found;
  try {
    std::shared_ptr<Connection> connection = transport_->Dial(AddressOf(task), name, deadline);
    Remember(connection);
    return connection;
  } catch (const UnavailableError& e) {
    LogDebug("cluster", name, " is not there: ", e.what());
  } catch (const DeadlineExceededError& e) {
    LogDebug("cluster", name, " does not answer: ", e.what());
  }
  return nullptr;
}

std::optional<Clock::time_point> ClusterNode::GoneSince(const std::string& task) {
  MutexLock lock(mu_);
  const auto found = gone_since_.find(task);
  return found == gone_since_.end() ? std::nullopt : std::optional(found->second);
}

const std::string& ClusterNode::AddressOf(const DeviceName& task) const {
  if (!task.job || !task.task || !cluster_.has_job(*task.job) || !cluster_.has_task(*task.job, *task.task)) {
    throw NotFoundError(StrCat("[cluster] there is no ", task.ToString(), " in ", cluster_.ToString()));
  }
  return cluster_.task_address(*task.job, *task.task);
}

std::shared_ptr<Connection> ClusterNode::ReachAddress(const std::string& address, Clock::time_point deadline) {
  return DialUntil(address, "", {.deadline = deadline});
}

std::shared_ptr<Connection> ClusterNode::DialUntil(const std::string& address, const std::string& task,
                                                   const Patience& patience) {
  const Clock::time_point start = Clock::now();  // NOLINT(clang-analyzer-deadcode.DeadStores): it follows no catch
  int said = 0;
  std::chrono::milliseconds pause = kFirstRetry;
  std::string reason;  // of the last attempt that was long enough to learn something
  for (;;) {
    Clock::time_point deadline = patience.deadline;
    const Clock::time_point attempt = Clock::now();
    try {
      std::shared_ptr<Connection> connection = transport_->Dial(address, task, deadline);
      Remember(connection);
      return connection;
    } catch (const UnavailableError& e) {
      reason = e.what();
      deadline = std::min(deadline, patience.if_refused);
    } catch (const DeadlineExceededError& e) {
      // Something accepts connections there but is stopped, or is none of ours.
      if (reason.empty() || Clock::now() - attempt >= kTellingAttempt) reason = e.what();
    }
    const Clock::time_point now = Clock::now();
    const double waited = SecondsBetween(start, now);
    if (now >= deadline) {
      throw UnavailableError(StrCat("[cluster] ", task.empty() ? "the task" : task, " (", address,
                                    ") could not be reached for ", waited, " s: ", reason));
    }
    if (now >= start + (said + 1) * missing_interval_) {
      ++said;
      LogInfo("cluster", identity_.task, " still waits for ", task.empty() ? "the task" : task, " (", address, "), ",
              waited, " s so far: ", reason);
    }
    PauseDialing(task, std::min(deadline, now + pause), patience);
    pause = std::min(pause * 2, kLastRetry);
    if (task.empty()) continue;
    if (auto found = FindConnection(task)) return found;
  }
}

void ClusterNode::PauseDialing(const std::string& task, Clock::time_point until, const Patience& patience) {
  MutexLock lock(mu_);
  for (;;) {
    if (stopped_) throw CancelledError(StrCat("[cluster] ", identity_.task, " was stopped while it waited for ", task));
    if (patience.lease) {
      const auto lease = leases_.find(*patience.lease);
      if (lease == leases_.end() || lease->second.ended) {
        throw CancelledError(StrCat("[cluster] the session ended while ", identity_.task, " waited for ", task));
      }
    }
    if (connections_.count(task) > 0 || !changed_.WaitUntil(mu_, until)) return;
  }
}

std::shared_ptr<TaskClient> ClusterNode::ClientFor(const DeviceName& task, Clock::time_point deadline) {
  if (local_ != nullptr && task == task_) return local_;
  const std::shared_ptr<RemoteTask> remote = RemoteTaskOn(Reach(task, deadline));
  remote->FetchDevices(std::min(deadline, Clock::now() + kDevicesTimeout));
  return remote;
}

std::shared_ptr<RemoteTask> ClusterNode::RemoteTaskOn(const std::shared_ptr<Connection>& connection) {
  std::shared_ptr<RemoteTask> task;
  {
    MutexLock lock(mu_);
    const auto known = remote_tasks_.find(connection.get());
    task = known != remote_tasks_.end() ? known->second : std::make_shared<RemoteTask>(weak_from_this(), connection);
    // Who has been closed is forgotten by OnClosed, which may have been here before.
    if (!stopped_ && !connection->closed()) remote_tasks_[connection.get()] = task;
  }
  // It may have been closed before the task was made; OnClosed then told nobody.
  if (connection->closed()) task->OnLost(ClosedStatus(*connection));
  return task;
}

std::vector<DeviceName> ClusterNode::Others() const {
  std::vector<DeviceName> others;
  for (const std::string& job : cluster_.jobs()) {
    for (const int index : cluster_.task_indices(job)) {
      DeviceName task;
      task.job = job;
      task.replica = 0;
      task.task = index;
      if (task != task_) others.push_back(task);
    }
  }
  return others;
}

// The caller may end its process next, and what is still on its way would be lost: so the answers are waited for.
void ClusterNode::AnnounceDone() {
  std::vector<std::thread> tellers;  // one that does not answer holds up nobody
  for (const DeviceName& task : Others()) tellers.emplace_back([this, task] { TellDone(task); });
  for (std::thread& teller : tellers) teller.join();
}

void ClusterNode::TellDone(const DeviceName& task) {
  try {
    RemoteTaskOn(Reach(task, Clock::now() + kReachForDone))->AnnounceDone(Clock::now() + kConfirmDone);
  } catch (const DeadlineExceededError& e) {
    LogWarning("cluster", task.ToString(), " may not know that training is done: ", e.what());
  } catch (const Error& e) {
    LogDebug("cluster", "not told that training is done: ", e.what());  // it has ended, for whatever reason
  }
}

void ClusterNode::WaitForEnd(const ChiefWatch::Limits& limits) {
  chief_.WaitForEnd(limits, missing_interval_, [this] { return LookForChief(); });
}

void ClusterNode::ThrowIfChiefIsLost(std::chrono::milliseconds orphan_timeout) {
  chief_.ThrowIfLost(orphan_timeout, [this] { return LookForChief(); });
}

std::string ClusterNode::LookForChief() {
  if (FindConnection(chief_name_) != nullptr) return "";
  try {
    Remember(transport_->Dial(AddressOf(DeviceName::Parse(chief_name_)), chief_name_, Clock::now() + kLookForChief));
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

void ClusterNode::OnAccepted(const std::shared_ptr<Connection>& connection) { Remember(connection); }

void ClusterNode::OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) {
  const std::string& peer = connection->peer().task;
  std::vector<uint64_t> ended;
  bool was_the_task = true;  // and not a second process by the same name (CheckFirstOfItsTask)
  {
    MutexLock lock(mu_);
    if (stopped_) return;
    const auto [begin, end] = connections_.equal_range(peer);
    for (auto it = begin; it != end; ++it) {
      if (it->second == connection) {
        connections_.erase(it);
        break;
      }
      if (!it->second->closed() && it->second->peer().incarnation != connection->peer().incarnation) {
        was_the_task = false;
      }
    }
    if (const DeviceName task = DeviceName::Parse(peer);
        connections_.count(peer) == 0 && task.job && task.task && cluster_.has_task(*task.job, *task.task)) {
      gone_since_.emplace(peer, Clock::now() - connection->silent_for());
    }
    for (const auto& [session, lease] : leases_) {
      if (lease.master == connection) ended.push_back(session);
    }
    if (connections_.count(peer) == 0) chief_.OnDisconnected(peer);
  }
  changed_.NotifyAll();
  std::shared_ptr<RemoteTask> remote;
  {
    MutexLock lock(mu_);
    const auto it = remote_tasks_.find(connection.get());
    if (it != remote_tasks_.end()) {
      remote = std::move(it->second);
      remote_tasks_.erase(it);
    }
  }
  for (const Service& entry : services_) entry.service->OnClosed(connection, why);
  if (remote != nullptr) remote->OnLost(why);
  // Even where another connection to the peer lives: what was on its way over this one will not come.
  if (local_ != nullptr && was_the_task) local_->TaskLost(peer, why);
  for (const uint64_t session : ended) DropLease(session);
}

void ClusterNode::DropLease(uint64_t session) {
  {
    MutexLock lock(mu_);
    const auto lease = leases_.find(session);
    if (lease != leases_.end()) lease->second.ended = true;
  }
  changed_.NotifyAll();
  // Closing waits for kernels that are under way.
  clerk_->Schedule(session, [this, session] {
    local_->CloseSession(session);
    {
      MutexLock lock(mu_);
      leases_.erase(session);
      chief_.SetLeases(leases_.size());
    }
    changed_.NotifyAll();
  });
}

NodeService* ClusterNode::FindService(uint16_t kind) const {
  for (const Service& entry : services_) {
    if (entry.first_kind <= kind && kind <= entry.last_kind) return entry.service.get();
  }
  return nullptr;
}

void ClusterNode::OnMessage(const std::shared_ptr<Connection>& connection, Message message) {
  if (NodeService* service = FindService(message.kind)) return service->OnMessage(connection, std::move(message));
  const auto kind = static_cast<MessageKind>(message.kind);
  const bool to_server = kind != MessageKind::kDevices && kind != MessageKind::kRegistered &&
                         kind != MessageKind::kStepDone && kind != MessageKind::kHeardDone;
  if (to_server && local_ == nullptr) {
    throw InvalidArgumentError(
        StrCat("[protocol] ", identity_.task, " runs no task, but was sent message kind ", message.kind));
  }
  switch (kind) {
    case MessageKind::kValues: return HandleValues(std::move(message));
    case MessageKind::kStartStep: return HandleStart(connection, std::move(message));
    case MessageKind::kStepDone: {
      const StepDoneMessage done = DecodeStepDone(message);
      RemoteTaskOn(connection)->OnStepDone(done, std::move(message.tensors));
      return;
    }
    case MessageKind::kCancelStep: {
      const StepDoneMessage cancel = DecodeCancelStep(message);
      local_->CancelStep(cancel.ref.key, cancel.ref.step, cancel.status);
      return;
    }
    case MessageKind::kListDevices:
      connection->Send(EncodeDevices(DecodeListDevices(message), local_->devices()));
      return;
    case MessageKind::kDevices: {
      RemoteTaskOn(connection)->OnDevices(DecodeDevices(message));
      return;
    }
    case MessageKind::kRegister: {
      auto request = std::make_shared<RegisterRequest>(DecodeRegister(message));
      {
        MutexLock lock(mu_);
        leases_[request->spec.key.session].master = connection;
        chief_.SetLeases(leases_.size());
      }
      clerk_->Schedule(request->spec.key.session,
                       [this, connection, request] { HandleRegister(connection, std::move(*request)); });
      return;
    }
    case MessageKind::kRegistered: {
      RemoteTaskOn(connection)->OnRegistered(DecodeRegistered(message));
      return;
    }
    case MessageKind::kCloseSession: return DropLease(DecodeCloseSession(message));
    case MessageKind::kResetContainer: return local_->ResetContainer(DecodeResetContainer(message));
    case MessageKind::kTrainingDone: {
      LogInfo("cluster", identity_.task, ": ", connection->peer().task, " says that training is done");
      connection->Send(EncodeHeardDone(DecodeTrainingDone(message)));  // before anything ends: it leaves before goodbye
      chief_.OnTrainingDone();
      return;
    }
    case MessageKind::kHeardDone: return RemoteTaskOn(connection)->OnHeardDone(DecodeHeardDone(message));
  }
  throw InvalidArgumentError(StrCat("[protocol] unknown message kind ", message.kind));
}

void ClusterNode::CheckFirstOfItsTask(const Connection& connection) {
  const Clock::time_point deadline = Clock::now() + kFormerLeaves;
  const TaskIdentity& peer = connection.peer();
  MutexLock lock(mu_);
  for (;;) {
    const auto [begin, end] = connections_.equal_range(peer.task);  // in the order of their coming
    const auto first = std::find_if(begin, end, [](const auto& entry) { return !entry.second->closed(); });
    if (first == end || first->second->peer().incarnation == peer.incarnation) return;
    if (stopped_ || Clock::now() >= deadline) {
      throw AlreadyExistsError(StrCat("[cluster] two processes are ", peer.task, " for ", identity_.task, ", at ",
                                      first->second->peer().address, " and, later, at ", peer.address,
                                      ": start each task once, all with the same cluster"));
    }
    changed_.WaitUntil(mu_, deadline);
  }
}

void ClusterNode::HandleRegister(const std::shared_ptr<Connection>& connection, RegisterRequest request) {
  Status status;
  try {
    CheckFirstOfItsTask(*connection);
    // Whom the steps will send values to is connected now, so that no step has to wait for that.
    std::set<std::string> receivers;
    for (const EdgeRoute& edge : request.spec.edges) {
      if (edge.src_task == request.spec.self && edge.dst_task != request.spec.self) {
        receivers.insert(request.spec.tasks[static_cast<size_t>(edge.dst_task)]);
      }
    }
    const Clock::time_point now = Clock::now();
    const Patience patience{
        .deadline = now + kPeerForValues, .if_refused = now + kPeerRefuses, .lease = request.spec.key.session};
    for (const std::string& receiver : receivers) ReachTask(DeviceName::Parse(receiver), patience);
    local_->Register(std::move(request.spec));
  } catch (...) {
    status = Status::FromCurrentException();
  }
  connection->Send(EncodeRegistered(request.request, status));
}

void ClusterNode::HandleStart(const std::shared_ptr<Connection>& connection, Message message) {
  const StepRef ref = DecodeStartStep(message);
  local_->StartStep(ref.key, ref.step, std::move(message.tensors), Executor::Mode::kNetwork,
                    [connection, ref](const Status& status, std::vector<Tensor> rets) {
                      connection->Send(EncodeStepDone(ref, status, std::move(rets)));
                    });
}

void ClusterNode::HandleValues(Message message) {
  const ValuesMessage values = DecodeValues(message);
  for (size_t i = 0; i < values.edges.size(); ++i) {
    local_->Deliver(values.ref.key, values.ref.step, values.edges[i], message.tensors[i]);
  }
}

void ClusterNode::SendValues(const ExecutableKey& key, const std::string& task, int64_t step,
                             std::vector<EdgeValue> values) {
  // Without a connection the peer is lost, and the step is being cancelled for that.
  if (const auto connection = FindConnection(task)) {
    connection->Send(EncodeValues({key, step}, std::move(values)));
  }
}

}  // namespace cohort
