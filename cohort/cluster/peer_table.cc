// Connections by task. A thread that needs a task looks for an open connection, and otherwise dials again and again,
// with growing pauses, until a limit (DialUntil). A peer may connect to this process in the meantime, which ends the
// pause. Connections that close are removed, and the time of the loss is kept.
#include "cohort/cluster/peer_table.h"

#include <algorithm>

#include "cohort/cluster/steps/protocol.h"
#include "cohort/cluster/tf_config.h"
#include "cohort/core/deadline.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/device.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFirstRetry{10};
constexpr std::chrono::milliseconds kLastRetry{500};
constexpr std::chrono::seconds kFormerLeaves{10};  // twice the usual silence limit
// An attempt that the deadline has ended sooner than this says nothing about the peer.
constexpr std::chrono::milliseconds kTellingAttempt{500};

// Rounded to milliseconds.
double SecondsBetween(Clock::time_point start, Clock::time_point end) {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(end - start).count()) / 1000.0;
}

std::string PlaceIn(const ClusterSpec& cluster, const std::string& job, int index) {
  return cluster.has_task(job, index) ? StrCat("is at ", cluster.task_address(job, index)) : "is missing";
}

// Returns the first task that the two do not have at the same address, as "/job:worker/task:1 is at h:2 here and is
// missing there". Returns "" if they are equal.
std::string DifferenceOf(const ClusterSpec& here, const ClusterSpec& there) {
  std::set<std::pair<std::string, int>> tasks;
  for (const ClusterSpec* cluster : {&here, &there}) {
    for (auto& task : cluster->tasks()) tasks.insert(std::move(task));
  }
  for (const auto& [job, index] : tasks) {
    const std::string one = PlaceIn(here, job, index), other = PlaceIn(there, job, index);
    if (one != other) return StrCat("/job:", job, "/task:", index, " ", one, " here and ", other, " there");
  }
  return "";
}

}  // namespace

DeviceName FullTaskName(const std::string& job, int index) {
  DeviceName name;
  name.job = job;
  name.replica = 0;
  name.task = index;
  return name;
}

Status ClosedStatus(const Connection& connection) {
  const TaskIdentity& peer = connection.peer();
  return Status(Code::kUnavailable, StrCat("[cluster] ", peer.task, peer.address.empty() ? "" : " (", peer.address,
                                           peer.address.empty() ? "" : ")", " closed the connection"));
}

PeerTable::PeerTable(ClusterSpec cluster, const DeviceName& self, std::unique_ptr<Transport> transport,
                     PeerListener& listener, std::chrono::milliseconds missing_interval, uint64_t op_fingerprint)
    : cluster_(std::move(cluster)),
      missing_interval_(missing_interval.count() > 0 ? std::min(missing_interval, kLongestLimit) : kLongestLimit),
      listener_(listener),
      transport_(std::move(transport)) {
  identity_.task = self.ToString();
  identity_.incarnation = NewIncarnation();
  identity_.op_fingerprint = op_fingerprint;
  identity_.protocol_version = kProtocolVersion;
  identity_.cluster = ClusterToJson(cluster_);
}

void PeerTable::set_cluster(ClusterSpec cluster) {
  MutexLock lock(mu_);
  cluster_ = std::move(cluster);
}

void PeerTable::SetAddress(const std::string& address) {
  identity_.address = address;
  transport_->SetIdentity(identity_);
}

std::shared_ptr<Connection> PeerTable::FindLocked(const std::string& task) {
  const auto [begin, end] = connections_.equal_range(task);
  const auto live = std::find_if(begin, end, [](const auto& entry) { return !entry.second->closed(); });
  return live == end ? nullptr : live->second;
}

std::vector<std::shared_ptr<Connection>> PeerTable::Connections() {
  std::vector<std::shared_ptr<Connection>> all;
  MutexLock lock(mu_);
  for (const auto& [task, connection] : connections_) all.push_back(connection);
  return all;
}

std::shared_ptr<Connection> PeerTable::Find(const std::string& task) {
  MutexLock lock(mu_);
  return FindLocked(task);
}

void PeerTable::Add(const std::shared_ptr<Connection>& connection) {
  const TaskIdentity& peer = connection->peer();
  {
    MutexLock lock(mu_);
    if (stopped_) return;
    connections_.emplace(peer.task, connection);
    gone_since_.erase(peer.task);
    listener_.OnPeerConnected(peer);
    // If the connection has closed and Remove has not been called, it will be.
    if (closed_early_.erase(connection) > 0) RemoveLocked(connection);
  }
  changed_.NotifyAll();
}

bool PeerTable::Remove(const std::shared_ptr<Connection>& connection) {
  bool was_the_task = true;
  {
    MutexLock lock(mu_);
    if (stopped_) return true;
    was_the_task = RemoveLocked(connection);
  }
  changed_.NotifyAll();
  return was_the_task;
}

bool PeerTable::RemoveLocked(const std::shared_ptr<Connection>& connection) {
  const TaskIdentity& peer = connection->peer();
  bool was_the_task = true;
  const auto [begin, end] = connections_.equal_range(peer.task);
  auto mine = end;
  bool same_process = false;
  for (auto it = begin; it != end; ++it) {
    const bool same = it->second->peer().incarnation == peer.incarnation;
    if (it->second == connection) {
      mine = it;
    } else if (same) {
      same_process = true;
    } else if (mine == end && !it->second->closed()) {
      was_the_task = false;
    }
  }
  if (mine == end) {  // it is not in the table yet
    std::erase_if(closed_early_, [](const auto& early) { return early.expired(); });
    closed_early_.insert(connection);
    return was_the_task;
  }
  closed_traffic_.sent += connection->bytes_sent();
  closed_traffic_.received += connection->bytes_received();
  connections_.erase(mine);
  const bool task_gone = connections_.count(peer.task) == 0;
  if (const DeviceName task = DeviceName::Parse(peer.task);
      task_gone && task.job && task.task && cluster_.has_task(*task.job, *task.task)) {
    gone_since_.emplace(peer.task, Clock::now() - connection->silent_for());
  }
  if (!same_process) listener_.OnPeerGone(peer, task_gone);
  return was_the_task;
}

PeerTable::Traffic PeerTable::traffic() {
  MutexLock lock(mu_);
  Traffic all = closed_traffic_;
  for (const auto& [task, connection] : connections_) {
    all.sent += connection->bytes_sent();
    all.received += connection->bytes_received();
  }
  return all;
}

std::vector<PeerTable::Peer> PeerTable::ListPeers() {
  std::map<std::string, Peer> peers;
  MutexLock lock(mu_);
  for (const auto& [task, connection] : connections_) {
    const auto [at, is_new] = peers.emplace(task, Peer{.task = task, .connected = true});
    Peer& peer = at->second;
    peer.address = connection->peer().address;
    const std::chrono::milliseconds silent = connection->silent_for();
    peer.silent = is_new ? silent : std::min(peer.silent, silent);
    peer.traffic.sent += connection->bytes_sent();
    peer.traffic.received += connection->bytes_received();
  }
  const Clock::time_point now = Clock::now();
  for (const auto& [task, since] : gone_since_) {
    const auto silent = std::chrono::duration_cast<std::chrono::milliseconds>(now - since);
    peers.emplace(task, Peer{.task = task, .address = AddressOf(DeviceName::Parse(task)), .silent = silent});
  }
  std::vector<Peer> all;
  all.reserve(peers.size());
  for (auto& [task, peer] : peers) all.push_back(std::move(peer));
  return all;
}

std::optional<Clock::time_point> PeerTable::GoneSince(const std::string& task) {
  MutexLock lock(mu_);
  const auto found = gone_since_.find(task);
  return found == gone_since_.end() ? std::nullopt : std::optional(found->second);
}

std::string PeerTable::DescribeFirstLostTask() {
  MutexLock lock(mu_);
  const auto first = std::min_element(gone_since_.begin(), gone_since_.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  if (first == gone_since_.end()) return "";
  return StrCat("; ", first->first, " had gone ", SecondsBetween(first->second, Clock::now()), " s before");
}

const std::string& PeerTable::AddressOf(const DeviceName& task) const {
  if (!task.job || !task.task || !cluster_.has_job(*task.job) || !cluster_.has_task(*task.job, *task.task)) {
    throw NotFoundError(StrCat("[cluster] there is no ", task.ToString(), " in ", cluster_.ToString()));
  }
  return cluster_.task_address(*task.job, *task.task);
}

std::shared_ptr<Connection> PeerTable::Reach(const DeviceName& task, const DialLimits& limits) {
  const std::string name = task.ToString();
  if (auto found = Find(name)) return found;
  return DialUntil(AddressOf(task), name, limits);
}

std::shared_ptr<Connection> PeerTable::ReachAddress(const std::string& address, const DialLimits& limits) {
  return DialUntil(address, "", limits);
}

std::shared_ptr<Connection> PeerTable::TryReach(const DeviceName& task, Clock::time_point deadline, Status* why_not) {
  const std::string name = task.ToString();
  if (auto found = Find(name)) return found;
  try {
    std::shared_ptr<Connection> connection = transport_->Dial(AddressOf(task), name, deadline);
    Add(connection);
    return connection;
  } catch (const UnavailableError&) {
    *why_not = Status::FromCurrentException();
  } catch (const DeadlineExceededError&) {
    *why_not = Status::FromCurrentException();
  }
  return nullptr;
}

void PeerTable::CompareClusters(const TaskIdentity& peer) {
  if (cluster_.empty() || peer.cluster.empty() || peer.cluster == identity_.cluster) return;
  const std::string difference = DifferenceOf(cluster_, ParseTFConfig(peer.cluster).cluster);
  if (difference.empty()) return;
  {
    MutexLock lock(mu_);
    if (!compared_.insert(peer.task).second) return;
  }
  LogWarning("cluster", identity_.task, " was started with another cluster than ", peer.task, " (", peer.address,
             "): ", difference, ". Give all tasks the same hosts");
}

std::shared_ptr<Connection> PeerTable::DialUntil(const std::string& address, const std::string& task,
                                                 const DialLimits& limits) {
  const Clock::time_point start = Clock::now();  // NOLINT(clang-analyzer-deadcode.DeadStores): it follows no catch
  int said = 0;
  std::chrono::milliseconds pause = kFirstRetry;
  std::function<bool()> given_up;
  if (limits.interrupted) given_up = [&limits] { return !limits.interrupted().ok(); };
  std::string reason;  // of the last attempt that was long enough to learn a reason
  for (;;) {
    Clock::time_point deadline = limits.deadline;
    const Clock::time_point attempt = Clock::now();
    try {
      std::shared_ptr<Connection> connection = transport_->Dial(address, task, {deadline, given_up});
      CompareClusters(connection->peer());
      Add(connection);
      return connection;
    } catch (const UnavailableError& e) {
      reason = e.what();
      deadline = std::min(deadline, limits.if_refused);
    } catch (const DeadlineExceededError& e) {
      // A process accepts connections there, but it is stopped or is not one of ours.
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
    PauseDialing(task, std::min(deadline, now + pause), limits);
    pause = std::min(pause * 2, kLastRetry);
    if (task.empty()) continue;
    if (auto found = Find(task)) return found;
  }
}

void PeerTable::PauseDialing(const std::string& task, Clock::time_point until, const DialLimits& limits) {
  for (;;) {
    if (const Status why = limits.interrupted ? limits.interrupted() : Status(); !why.ok()) {
      Status(why.code(), StrCat(why.message(), "; ", identity_.task, " waits no longer for ",
                                task.empty() ? "the target's task" : task))
          .ThrowIfError();
    }
    MutexLock lock(mu_);
    if (stopped_) throw CancelledError(StrCat("[cluster] ", identity_.task, " was stopped while it waited for ", task));
    if (connections_.count(task) > 0 || !changed_.WaitUntil(mu_, until)) return;
  }
}

void PeerTable::CheckFirstOfItsTask(const Connection& connection) {
  const Clock::time_point deadline = Clock::now() + kFormerLeaves;
  const TaskIdentity& peer = connection.peer();
  MutexLock lock(mu_);
  for (;;) {
    const std::shared_ptr<Connection> first = FindLocked(peer.task);
    if (first == nullptr || first->peer().incarnation == peer.incarnation) return;
    if (stopped_ || Clock::now() >= deadline) {
      throw AlreadyExistsError(StrCat("[cluster] two processes are ", peer.task, " for ", identity_.task, ", at ",
                                      first->peer().address, " and, later, at ", peer.address,
                                      ": start each task once, all with the same cluster"));
    }
    changed_.WaitUntil(mu_, deadline);
  }
}

void PeerTable::Wake() {
  { const MutexLock lock(mu_); }  // waits until a dialer that has just called `interrupted` is in its wait
  changed_.NotifyAll();
}

void PeerTable::Stop() {
  {
    MutexLock lock(mu_);
    stopped_ = true;
  }
  changed_.NotifyAll();
}

void PeerTable::Clear() {
  MutexLock lock(mu_);
  connections_.clear();
}

}  // namespace cohort
