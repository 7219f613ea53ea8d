// Membership. The Record functions change the state of one peer and wake waiting functions. AwaitAll repeats three
// steps until all processes have joined: it calls `reach`, looks which processes are missing or lost (FindMissing), and
// waits for a change, with pauses that double.
#include "cohort/collective/membership.h"

#include <algorithm>
#include <utility>

#include "cohort/cluster/host_identity.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

using Clock = std::chrono::steady_clock;

// The pauses between attempts to reach processes that do not listen yet. They double each time.
constexpr std::chrono::milliseconds kFirstPause{10};
constexpr std::chrono::milliseconds kLongestPause{500};
constexpr std::chrono::seconds kFarewellLimit{5};
// How long AwaitAll waits for a member that was connected and is lost, because it may be restarting.
constexpr std::chrono::seconds kReturnLimit{3};

}  // namespace

Membership::Membership(const GroupOptions& options, const std::string& own_task)
    : key_(options.key),
      generation_(options.generation),
      own_host_(options.host.empty() ? HostIdentity() : options.host),
      members_(options.key, options.members, own_task),
      peers_(members_.tasks().size()) {}

std::string Membership::Describe() const { return StrCat("group ", key_, ", generation ", generation_); }

bool Membership::HasOurJoin(int process) const {
  MutexLock lock(mu_);
  return peers_[static_cast<size_t>(process)].has_our_join;
}

bool Membership::RecordJoin(int process, const JoinMessage& join) {
  {
    MutexLock lock(mu_);
    Peer& peer = peers_[static_cast<size_t>(process)];
    if (peer.joined) return false;
    peer.joined = true;
    peer.host = join.host;
    peer.endpoints = join.endpoints;
  }
  changed_.NotifyAll();
  return true;
}

void Membership::SetConnection(int process, const std::shared_ptr<Connection>& connection) {
  MutexLock lock(mu_);
  Peer& peer = peers_[static_cast<size_t>(process)];
  peer.connection = connection;
  peer.has_our_join = true;
}

Membership::Missing Membership::FindMissing() const {
  Missing missing;
  for (size_t process = 0; process < peers_.size(); ++process) {
    if (static_cast<int>(process) == members_.own_process() || peers_[process].joined) continue;
    missing.all.push_back(members_.DescribeProcess(static_cast<int>(process)));
    const auto heard = generation_ > 1 ? std::nullopt : last_heard_(members_.tasks()[process]);
    if (!heard) continue;
    missing.lost.push_back(missing.all.back());
    missing.given_up = std::min(missing.given_up, *heard + kReturnLimit);
  }
  return missing;
}

Status Membership::AwaitAll(const std::function<bool()>& reach, Clock::time_point deadline,
                            Clock::duration log_interval) {
  const auto start = Clock::now();
  auto next_log = start + log_interval;
  auto pause = kFirstPause;
  for (;;) {
    const bool reached = reach();
    MutexLock lock(mu_);
    failed_.ThrowIfError();
    const Missing missing = FindMissing();
    if (missing.all.empty()) {
      SetHosts();
      formed_ = true;
      return {};
    }
    const auto now = Clock::now();
    if (now >= missing.given_up) {
      return Status(Code::kUnavailable,
                    StrCat("[collective] ", Describe(), " cannot be formed; gone: ", StrJoin(missing.lost, ", ")));
    }
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - start).count() / 1000.0;
    if (now >= deadline) {
      throw DeadlineExceededError(StrCat("[collective] ", Describe(), " is not complete after ", waited,
                                         " s: ", StrJoin(missing.all, ", "), " did not join"));
    }
    if (now >= next_log) {
      LogInfo("collective", Describe(), " still waits for ", StrJoin(missing.all, ", "), ", ", waited, " s so far");
      next_log = now + log_interval;
    }
    auto until = std::min({deadline, next_log, missing.given_up});
    if (!reached) {
      until = std::min(until, now + pause);
      pause = std::min(2 * pause, kLongestPause);
    }
    changed_.WaitUntil(mu_, until);
  }
}

std::vector<std::string> Membership::MissingTasks() const {
  std::vector<std::string> tasks;
  MutexLock lock(mu_);
  if (formed_) return tasks;
  for (size_t process = 0; process < peers_.size(); ++process) {
    const bool own = static_cast<int>(process) == members_.own_process();
    if (!own && !peers_[process].joined) tasks.push_back(members_.tasks()[process]);
  }
  return tasks;
}

void Membership::SetHosts() {
  std::vector<std::string> identities;
  for (const Peer& peer : peers_) identities.push_back(peer.host);
  identities[static_cast<size_t>(members_.own_process())] = own_host_;
  members_.SetHosts(identities);
}

std::optional<uint64_t> Membership::FormedWith(const std::string& task) const {
  const int process = members_.FindProcess(task);
  if (process < 0 || process == members_.own_process()) return std::nullopt;
  MutexLock lock(mu_);
  if (!formed_) return std::nullopt;
  return peers_[static_cast<size_t>(process)].connection->peer().incarnation;
}

std::vector<std::vector<std::string>> Membership::Endpoints() const {
  std::vector<std::vector<std::string>> endpoints;
  MutexLock lock(mu_);
  for (const Peer& peer : peers_) endpoints.push_back(peer.endpoints);
  return endpoints;
}

std::vector<std::shared_ptr<Connection>> Membership::Connections() const {
  std::vector<std::shared_ptr<Connection>> connections;
  MutexLock lock(mu_);
  for (const Peer& peer : peers_) {
    if (peer.connection != nullptr) connections.push_back(peer.connection);
  }
  return connections;
}

std::shared_ptr<Connection> Membership::ConnectionTo(int process) const {
  MutexLock lock(mu_);
  return peers_[static_cast<size_t>(process)].connection;
}

int Membership::FindProcess(const std::shared_ptr<Connection>& connection) const {
  for (size_t process = 0; process < peers_.size(); ++process) {
    if (peers_[process].connection == connection) return static_cast<int>(process);
  }
  return -1;
}

int Membership::RecordLeave(const std::shared_ptr<Connection>& connection) {
  MutexLock lock(mu_);
  const int process = FindProcess(connection);
  if (process < 0 || std::exchange(peers_[static_cast<size_t>(process)].left, true)) return -1;
  return process;
}

void Membership::RecordFarewell(const std::shared_ptr<Connection>& connection) {
  {
    MutexLock lock(mu_);
    const int process = FindProcess(connection);
    if (process >= 0) peers_[static_cast<size_t>(process)].farewell = true;
  }
  changed_.NotifyAll();
}

void Membership::AwaitFarewells() {
  const auto until = Clock::now() + kFarewellLimit;
  MutexLock lock(mu_);
  const auto waits_for = [](const Peer& peer) {
    return peer.connection != nullptr && !peer.farewell && !peer.left && peer.gone.ok();
  };
  while (failed_.ok() && std::any_of(peers_.begin(), peers_.end(), waits_for)) {
    if (!changed_.WaitUntil(mu_, until)) return;
  }
}

Membership::Closed Membership::RecordClosed(const std::shared_ptr<Connection>& connection) {
  MutexLock lock(mu_);
  changed_.NotifyAll();  // AwaitAll may wait for this process
  const int process = FindProcess(connection);
  if (process < 0) return {};
  return {process, !peers_[static_cast<size_t>(process)].left};
}

bool Membership::SetGone(int process, const Status& why) {
  {
    MutexLock lock(mu_);
    Peer& peer = peers_[static_cast<size_t>(process)];
    if (!peer.gone.ok()) return false;
    peer.gone = why;
  }
  any_gone_.store(true);
  changed_.NotifyAll();
  return true;
}

Status Membership::WhyGone(int rank) const {
  if (!any_gone_.load()) return {};
  MutexLock lock(mu_);
  return peers_[static_cast<size_t>(members_.process_of(rank))].gone;
}

std::vector<std::string> Membership::LostProcesses(int except) const {
  std::vector<std::string> lost;
  for (int process = 0; process < static_cast<int>(members_.tasks().size()); ++process) {
    if (process == members_.own_process() || process == except || last_heard_ == nullptr) continue;
    if (last_heard_(members_.tasks()[static_cast<size_t>(process)])) lost.push_back(members_.DescribeProcess(process));
  }
  return lost;
}

bool Membership::SetFailed(const Status& why) {
  {
    MutexLock lock(mu_);
    if (!failed_.ok()) return false;
    failed_ = why;
  }
  changed_.NotifyAll();
  return true;
}

Status Membership::status() const {
  MutexLock lock(mu_);
  return failed_;
}

}  // namespace cohort::collective
