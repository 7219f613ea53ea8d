#include "cohort/cluster/cluster_node.h"

#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/op_def.h"

namespace cohort {
namespace {

constexpr std::chrono::seconds kLookForChief{1};

}  // namespace

ClusterNode::ClusterNode(ClusterSpec cluster, DeviceName task, std::shared_ptr<const DeviceSet> devices,
                         std::shared_ptr<TaskResources> resources, const TransportMaker& make_transport,
                         const NodeOptions& options)
    : task_(std::move(task)),
      options_(options),
      chief_(task_.ToString(), options.chief),
      peers_(std::move(cluster), task_, make_transport(*this), *this, options.missing_interval,
             options.asks_only ? 0 : OpRegistry::Global().Fingerprint()),
      steps_(std::make_unique<StepService>(*this, std::move(devices), std::move(resources), options.reconnect_limit)) {
  for (const NodeServices::Entry& entry : NodeServices::Global().entries()) {
    services_.push_back({entry.first_kind, entry.last_kind, entry.make(*this)});
  }
  status_ = std::make_unique<StatusService>(*this, local_task() != nullptr);  // the last: its thread uses the others
}

ClusterNode::~ClusterNode() { Stop(Status(Code::kCancelled, StrCat("[cluster] ", task_.ToString(), " ends"))); }

int ClusterNode::Listen(const std::string& address) { return peers_.transport().Listen(address); }

void ClusterNode::Stop(const Status& why) {
  if (stopped_.exchange(true)) return;
  peers_.Stop();
  chief_.Stop();
  status_->OnStop(why);
  // The services stop before the steps, because steps may wait for them.
  for (const Service& entry : services_) entry.service->OnStop(why);
  steps_->OnStop(why);
  peers_.transport().Shutdown(peers_.DescribeFirstLostTask());
  steps_->End(why);
  peers_.Clear();
}

std::shared_ptr<Connection> ClusterNode::TryReach(const DeviceName& task,
                                                  std::chrono::steady_clock::time_point deadline) {
  Status why_not;
  std::shared_ptr<Connection> connection = peers_.TryReach(task, deadline, &why_not);
  if (connection == nullptr) LogDebug("cluster", task.ToString(), " is not there: ", why_not.message());
  return connection;
}

std::string ClusterNode::LookForChief() {
  Status why_not;
  try {
    const auto deadline = std::chrono::steady_clock::now() + kLookForChief;
    peers_.TryReach(DeviceName::Parse(options_.chief), deadline, &why_not);
  } catch (const Error& e) {
    return e.what();  // another token, or another task at its address
  }
  return why_not.message();
}

void ClusterNode::WaitForEnd(const ChiefWatch::Limits& limits) {
  chief_.WaitForEnd(limits, peers_.missing_interval(), [this] { return LookForChief(); });
}

void ClusterNode::ThrowIfChiefIsLost(std::chrono::milliseconds orphan_timeout) {
  chief_.ThrowIfLost(orphan_timeout, [this] { return LookForChief(); });
}

NodeService* ClusterNode::FindService(uint16_t kind) const {
  const auto of_steps = static_cast<MessageKind>(kind);
  if (of_steps == MessageKind::kStatusRequest || of_steps == MessageKind::kStatus) return status_.get();
  if (kind < kFirstServiceKind) return steps_.get();
  for (const Service& entry : services_) {
    if (entry.first_kind <= kind && kind <= entry.last_kind) return entry.service.get();
  }
  return nullptr;
}

std::vector<CollectiveWait> ClusterNode::Waits() {
  std::vector<CollectiveWait> waits;
  for (const Service& entry : services_) entry.service->AppendWaits(&waits);
  return waits;
}

void ClusterNode::OnAccepted(const std::shared_ptr<Connection>& connection) { peers_.Add(connection); }

void ClusterNode::OnMessage(const std::shared_ptr<Connection>& connection, Message message) {
  NodeService* service = FindService(message.kind);
  if (service == nullptr) throw InvalidArgumentError(StrCat("[protocol] unknown message kind ", message.kind));
  if (connection->peer().op_fingerprint == 0 && service != status_.get()) {
    throw PermissionDeniedError(StrCat("[protocol] expected only questions for the status of ", connection->peer().task,
                                       ", which has said that it asks nothing else; got a message of kind ",
                                       message.kind));
  }
  service->OnMessage(connection, std::move(message));
}

void ClusterNode::OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) {
  if (stopped_) return;
  const bool was_the_task = peers_.Remove(connection);
  // The services are told first. A group that has lost a member names the member, and steps that wait for the group get
  // that error.
  for (const Service& entry : services_) entry.service->OnClosed(connection, why);
  status_->OnClosed(connection, why);
  steps_->OnClosed(connection, why);
  // This is done even if another connection to the task is open, because messages on this connection are lost.
  if (was_the_task) steps_->OnTaskLost(connection->peer().task, why);
}

void ClusterNode::OnPeerConnected(const TaskIdentity& peer) {
  chief_.OnConnected(peer.task);
  steps_->OnPeerConnected(peer);
}

void ClusterNode::OnPeerGone(const TaskIdentity& peer, bool task_gone) {
  if (task_gone) chief_.OnDisconnected(peer.task);
  steps_->OnPeerGone(peer);
}

}  // namespace cohort
