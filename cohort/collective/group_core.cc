#include "cohort/collective/group_core.h"

#include <algorithm>

#include "cohort/cluster/host_identity.h"
#include "cohort/collective/group_registry.h"
#include "cohort/collective/late_calls.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

using Clock = std::chrono::steady_clock;

// Between attempts to reach those who do not listen yet: twice as long each time.
constexpr std::chrono::milliseconds kFirstPause{10};
constexpr std::chrono::milliseconds kLongestPause{500};
constexpr std::chrono::seconds kFarewell{5};
// How long a member is waited for that was there before and is gone: it may have been started again.
constexpr std::chrono::seconds kReturn{3};

DeviceName Completed(const DeviceName& name) {
  DeviceName base;
  base.replica = 0;
  base.task = 0;
  base.type = kHostDeviceType;
  base.id = 0;
  return name.CompletedFrom(base);
}

}  // namespace

GroupCore::GroupCore(const GroupOptions& options, const std::string& own_task)
    : options_(options), host_(options.host.empty() ? HostIdentity() : options.host) {
  for (const DeviceName& member : options.members) {
    const DeviceName name = Completed(member);
    if (std::find(names_.begin(), names_.end(), name.ToString()) != names_.end()) {
      throw InvalidArgumentError(
          StrCat("[collective] ", name.ToString(), " is a member of group ", options.key, " twice"));
    }
    const std::string task = own_task.empty() ? "this process" : name.Task().ToString();
    const auto known = std::find(tasks_.begin(), tasks_.end(), task);
    locations_.push_back({0, static_cast<int>(known - tasks_.begin())});
    if (known == tasks_.end()) tasks_.push_back(task);
    const bool here = own_task.empty() || task == own_task;
    if (here) own_process_ = locations_.back().process;
    local_index_.push_back(here ? static_cast<int>(local_ranks_.size()) : -1);
    if (here) local_ranks_.push_back(static_cast<int>(names_.size()));
    names_.push_back(name.ToString());
  }
  if (local_ranks_.empty()) {
    throw InvalidArgumentError(StrCat("[collective] expected a member of group ", options.key, " on ",
                                      own_task.empty() ? "this process" : own_task, "; got ", StrJoin(names_, ", ")));
  }
  peers_.resize(tasks_.size());
  for (const int rank : local_ranks_) members_.push_back(std::make_shared<LocalMember>(*this, rank));
  const auto cores = static_cast<size_t>(std::max(1u, std::thread::hardware_concurrency()));
  workers_ = std::make_unique<ThreadPool>("cohort-reduce", static_cast<int>(std::min(cores, local_ranks_.size())));
}

void GroupCore::StartWatching() {
  if (options_.timeout.count() > 0 || options_.late_interval.count() > 0) {
    watcher_ = std::thread([this] { WatchLoop(); });
  }
}

GroupCore::~GroupCore() { Close(Status(Code::kCancelled, "the group is gone")); }

std::string GroupCore::DescribeRank(int rank) const {
  if (rank < 0 || rank >= size()) return StrCat("rank ", rank);
  return StrCat("rank ", rank, " (", names_[static_cast<size_t>(rank)], ")");
}

std::string GroupCore::DescribeProcess(int process) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (process_of(rank) == process) ranks.push_back(rank);
  }
  return StrCat(ranks.size() > 1 ? "ranks " : "rank ", StrJoin(ranks, ", "), " (", tasks_[static_cast<size_t>(process)],
                ")");
}

JoinMessage GroupCore::OwnJoin() const {
  return {ref(),
          tasks_[static_cast<size_t>(own_process_)],
          host_,
          names_,
          options_.schedule,
          options_.algorithm,
          gloo_ != nullptr ? gloo_->Endpoints() : std::vector<std::string>()};
}

std::string GroupCore::Difference(const JoinMessage& join) const {
  if (join.members != names_) {
    return StrCat("its members are ", StrJoin(join.members, ", "), "; here they are ", StrJoin(names_, ", "));
  }
  if (join.algorithm != options_.algorithm) {
    return StrCat("its algorithm is ", AlgorithmName(join.algorithm), "; here it is ",
                  AlgorithmName(options_.algorithm));
  }
  const auto difference = FindDifference(options_.schedule, join.schedule, Names::kCount);
  if (!difference) return "";
  return StrCat("collective number ", difference->number, " of its schedule is ", difference->theirs, "; here it is ",
                difference->ours);
}

void GroupCore::SendJoin(int process, const std::shared_ptr<Connection>& connection) {
  {
    MutexLock lock(mu_);
    Peer& peer = peers_[static_cast<size_t>(process)];
    peer.connection = connection;
    peer.told = true;
  }
  connection->Send(EncodeJoin(OwnJoin()));
  if (connection->closed()) OnClosed(connection, Status(Code::kUnavailable, "the connection was closed"));
}

void GroupCore::OnJoin(const std::shared_ptr<Connection>& connection, const JoinMessage& join) {
  const auto known = std::find(tasks_.begin(), tasks_.end(), join.task);
  const int process = known == tasks_.end() ? -1 : static_cast<int>(known - tasks_.begin());
  std::string difference = Difference(join);
  if (process < 0 && difference.empty()) difference = "it is none of the members";
  if (gloo_ != nullptr && difference.empty()) {
    const auto members = std::count_if(locations_.begin(), locations_.end(),
                                       [&](const Location& location) { return location.process == process; });
    const size_t expected = GlooCalls::NumEndpoints(static_cast<size_t>(members));
    if (join.gloo_endpoints.size() != expected) {
      difference = StrCat("it has ", join.gloo_endpoints.size(), " addresses for Gloo, not ", expected);
    }
  }
  if (!difference.empty()) {
    Fail(Status(Code::kInvalidArgument,
                StrCat("[collective] ", join.task, " does not agree with ", DescribeProcess(own_process_), " on group ",
                       options_.key, ", generation ", options_.generation, ": ", difference,
                       "; build the same graph at every member")));
  }
  Status failed = status();
  if (!failed.ok()) {
    connection->Send(EncodeAbort({ref(), failed}));
    return;
  }
  bool answer = false;
  bool again = false;
  {
    MutexLock lock(mu_);
    Peer& peer = peers_[static_cast<size_t>(process)];
    again = peer.joined;
    peer.joined = true;
    if (!again) {
      peer.host = join.host;
      peer.gloo_endpoints = join.gloo_endpoints;
    }
    answer = !again && !peer.told;
  }
  if (again) {
    return Fail(Status(Code::kAborted, StrCat("[collective] ", DescribeProcess(process), " joined group ", options_.key,
                                              ", generation ", options_.generation,
                                              " again: it was restarted; join a new generation at every member")));
  }
  if (answer) SendJoin(process, connection);
  changed_.NotifyAll();
}

std::vector<std::string> GroupCore::WhoIsGone(int but) const {
  std::vector<std::string> lost;
  for (int process = 0; process < static_cast<int>(tasks_.size()); ++process) {
    if (process == own_process_ || process == but || gone_ == nullptr) continue;
    if (gone_(tasks_[static_cast<size_t>(process)])) lost.push_back(DescribeProcess(process));
  }
  return lost;
}

void GroupCore::AwaitAll(const std::function<bool()>& reach, Clock::time_point deadline, Clock::duration say_every) {
  const auto start = Clock::now();
  auto say = start + say_every;
  auto pause = kFirstPause;
  bool reached = false;
  std::vector<std::string> lost;
  for (;;) {
    reached = reached || reach();
    MutexLock lock(mu_);
    failed_.ThrowIfError();
    std::vector<std::string> missing;
    lost.clear();
    auto given_up = Clock::time_point::max();  // when the first of those who are gone will not come back any more
    for (size_t process = 0; process < peers_.size(); ++process) {
      if (static_cast<int>(process) == own_process_ || peers_[process].joined) continue;
      missing.push_back(DescribeProcess(static_cast<int>(process)));
      const auto since = options_.generation > 1 ? std::nullopt : gone_(tasks_[process]);
      if (!since) continue;
      lost.push_back(missing.back());
      given_up = std::min(given_up, *since + kReturn);
    }
    if (missing.empty()) return LearnHosts();
    const auto now = Clock::now();
    if (now >= given_up) break;
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - start).count() / 1000.0;
    const std::string what = StrCat("group ", options_.key, ", generation ", options_.generation);
    if (now >= deadline) {
      throw DeadlineExceededError(StrCat("[collective] ", what, " is not complete after ", waited,
                                         " s: ", StrJoin(missing, ", "), " did not join"));
    }
    if (now >= say) {
      LogInfo("collective", what, " still waits for ", StrJoin(missing, ", "), ", ", waited, " s so far");
      say = now + say_every;
    }
    auto until = std::min({deadline, say, given_up});
    if (!reached) {
      until = std::min(until, now + pause);
      pause = std::min(2 * pause, kLongestPause);
    }
    changed_.WaitUntil(mu_, until);
  }
  const Status why(Code::kUnavailable, StrCat("[collective] group ", options_.key, ", generation ", options_.generation,
                                              " cannot be formed; gone: ", StrJoin(lost, ", ")));
  Fail(why);  // for those who come later, and never saw who is gone
  why.ThrowIfError();
}

void GroupCore::LearnHosts() {
  std::vector<std::string> identities;
  for (const Peer& peer : peers_) identities.push_back(peer.host);
  identities[static_cast<size_t>(own_process_)] = host_;
  const std::vector<int> hosts = NumberHosts(identities);
  for (Location& location : locations_) location.host = hosts[static_cast<size_t>(location.process)];
}

void GroupCore::OpenGloo(const std::string& host) {
  if (options_.algorithm == Algorithm::kGloo && tasks_.size() > 1) gloo_ = std::make_unique<GlooCalls>(*this, host);
}

void GroupCore::ConnectGloo() {
  if (gloo_ == nullptr) return;
  std::vector<std::vector<std::string>> endpoints;
  {
    MutexLock lock(mu_);
    for (const Peer& peer : peers_) endpoints.push_back(peer.gloo_endpoints);
  }
  endpoints[static_cast<size_t>(own_process_)] = gloo_->Endpoints();
  gloo_->Connect(endpoints);
}

void GroupCore::OnData(const DataMessage& data, Tensor tensor, bool here) {
  if (data.from < 0 || data.from >= size() || data.to < 0 || data.to >= size() ||
      local_index_[static_cast<size_t>(data.to)] < 0) {
    throw DataLossError(StrCat("[collective] a message from rank ", data.from, " to rank ", data.to,
                               " came to a process without the latter"));
  }
  if (gloo_ != nullptr) return gloo_->OnData(data, tensor);
  members_[static_cast<size_t>(local_index_[static_cast<size_t>(data.to)])]->Deliver(data, std::move(tensor), here);
}

void GroupCore::Post(int from, int to, const CallId& call, int32_t sequence, const Signature& signature,
                     uint64_t schedule, Tensor tensor) {
  const DataMessage data = {ref(), call, from, to, sequence, signature, schedule};
  if (local_index_[static_cast<size_t>(to)] >= 0) return OnData(data, std::move(tensor), false);
  if (const auto connection = ConnectionTo(process_of(to))) connection->Send(EncodeData(data, std::move(tensor)));
}

void GroupCore::SendSchedule(const ScheduleMessage& message) {
  if (const auto connection = ConnectionTo(process_of(message.to))) connection->Send(EncodeSchedule(message));
}

void GroupCore::OnSchedule(const ScheduleMessage& message) {
  if (message.from < 0 || message.from >= size() || message.to < 0 || message.to >= size()) {
    throw DataLossError(
        StrCat("[collective] the schedule of rank ", message.from, " came for rank ", message.to, " of ", size()));
  }
  schedules_.OnMessage(message);
}

void GroupCore::OnSchedulesAgree() {
  for (const auto& member : members_) member->CheckSchedules();
  if (gloo_ != nullptr) gloo_->CheckSchedules();
}

void GroupCore::Schedule(std::function<void()> work) {
  {
    MutexLock lock(mu_);
    if (!closed_) return workers_->Schedule(std::move(work));
  }
  work();  // of a run that ends
}

void GroupCore::Retire(int rank, const CallId& call) {
  members_[static_cast<size_t>(local_index_[static_cast<size_t>(rank)])]->Retire(call);
}

Status GroupCore::status() const {
  MutexLock lock(mu_);
  return failed_;
}

std::vector<std::shared_ptr<Connection>> GroupCore::Connections() const {
  std::vector<std::shared_ptr<Connection>> connections;
  MutexLock lock(mu_);
  for (const Peer& peer : peers_) {
    if (peer.connection != nullptr) connections.push_back(peer.connection);
  }
  return connections;
}

std::shared_ptr<Connection> GroupCore::ConnectionTo(int process) const {
  MutexLock lock(mu_);
  return peers_[static_cast<size_t>(process)].connection;
}

bool GroupCore::FailHere(const Status& why) {
  {
    MutexLock lock(mu_);
    if (!failed_.ok()) return false;
    failed_ = why;
  }
  changed_.NotifyAll();
  meetings_.FailAll(why);
  for (const auto& member : members_) member->FailAll(why);
  if (gloo_ != nullptr) gloo_->Stop(why);
  return true;
}

void GroupCore::Fail(const Status& why) {
  if (!status().ok()) return;
  if (failures_ != nullptr) failures_->Add(ref(), why);
  // First, so that who hears of it passes it on before anybody ends for it and so becomes a second cause.
  for (const auto& connection : Connections()) connection->Send(EncodeAbort({ref(), why}));
  if (FailHere(why)) LogDebug("collective", "group ", options_.key, " has failed: ", why.ToString());
}

void GroupCore::OnAbort(const AbortMessage& abort) { Fail(abort.why); }

int GroupCore::FindProcess(const std::shared_ptr<Connection>& connection) const {
  for (size_t process = 0; process < peers_.size(); ++process) {
    if (peers_[process].connection == connection) return static_cast<int>(process);
  }
  return -1;
}

void GroupCore::SetGone(int process, const Status& why) {
  {
    MutexLock lock(mu_);
    Peer& peer = peers_[static_cast<size_t>(process)];
    if (!peer.gone.ok()) return;
    peer.gone = why;
  }
  any_gone_.store(true);
  changed_.NotifyAll();
  for (const auto& member : members_) member->CheckPeers();
  if (gloo_ != nullptr) gloo_->CheckPeers();
}

void GroupCore::OnLeave(const std::shared_ptr<Connection>& connection, const LeaveMessage&) {
  int process = -1;
  {
    MutexLock lock(mu_);
    process = FindProcess(connection);
    if (process < 0 || peers_[static_cast<size_t>(process)].left) return;
    peers_[static_cast<size_t>(process)].left = true;
  }
  SetGone(process, Status(Code::kUnavailable, StrCat("[collective] ", DescribeProcess(process), " has left group ",
                                                     options_.key, ", generation ", options_.generation)));
  if (gloo_ != nullptr) gloo_->OnLeft(process);
}

void GroupCore::OnFarewell(const std::shared_ptr<Connection>& connection) {
  {
    MutexLock lock(mu_);
    const int process = FindProcess(connection);
    if (process >= 0) peers_[static_cast<size_t>(process)].farewell = true;
  }
  changed_.NotifyAll();
}

void GroupCore::SendFarewell(int process) {
  if (const auto connection = ConnectionTo(process)) connection->Send(EncodeFarewell({ref()}));
}

void GroupCore::AwaitFarewells() {
  const auto until = Clock::now() + kFarewell;
  MutexLock lock(mu_);
  const auto waits_for = [](const Peer& peer) {
    return peer.connection != nullptr && !peer.farewell && !peer.left && peer.gone.ok();
  };
  while (failed_.ok() && std::any_of(peers_.begin(), peers_.end(), waits_for)) {
    if (!changed_.WaitUntil(mu_, until)) return;
  }
}

void GroupCore::OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) {
  int process = -1;
  bool had_left = false;
  {
    MutexLock lock(mu_);
    changed_.NotifyAll();  // perhaps it was waited for
    process = FindProcess(connection);
    if (process < 0) return;
    had_left = peers_[static_cast<size_t>(process)].left;
  }
  // One that was there when it should have joined and went before is likely to be why this one has gone.
  const std::vector<std::string> others = WhoIsGone(process);
  const Status gone(why.code(), StrCat("[collective] ", DescribeProcess(process), " of group ", options_.key,
                                       ", generation ", options_.generation, " is lost: ", why.message(),
                                       others.empty() ? "" : StrCat("; gone before: ", StrJoin(others, ", "))));
  // Who has said good-bye has done its part in what still runs.
  if (!had_left) Fail(gone);
  SetGone(process, gone);
}

Status GroupCore::WhyGone(int rank) const {
  if (!any_gone_.load()) return {};
  MutexLock lock(mu_);
  return peers_[static_cast<size_t>(process_of(rank))].gone;
}

void GroupCore::Leave(const Status& why) {
  if (status().ok()) {
    for (const auto& connection : Connections()) connection->SendAfterAll(EncodeLeave({ref()}));
    if (gloo_ != nullptr && gloo_->idle()) AwaitFarewells();
  }
  FailHere(why);
}

void GroupCore::Close(const Status& why) {
  {
    MutexLock lock(mu_);
    if (closed_) return;
    closed_ = true;
  }
  Leave(why);
  changed_.NotifyAll();
  std::unique_ptr<ThreadPool> workers;
  {
    MutexLock lock(mu_);
    workers = std::move(workers_);
  }
  const bool own = workers->IsOwnThread() || watcher_.get_id() == std::this_thread::get_id() ||
                   (gloo_ != nullptr && gloo_->IsOwnThread());
  if (!own) {
    if (watcher_.joinable()) watcher_.join();
    if (gloo_ != nullptr) gloo_->Join();
    return;
  }
  // What one of the group's threads ran was the last to hold the group: somebody else waits for that thread.
  std::thread([core = shared_from_this(), workers = std::move(workers)]() mutable {
    if (core->watcher_.joinable()) core->watcher_.join();
    if (core->gloo_ != nullptr) core->gloo_->Join();
    workers.reset();
  }).detach();
}

void GroupCore::Watch(const std::shared_ptr<Pending>& run, std::chrono::milliseconds longer) {
  if (options_.timeout.count() == 0) return;
  {
    MutexLock lock(mu_);
    const Watched watched = {Clock::now() + options_.timeout + longer, run};
    const auto later = [](const Watched& a, const Watched& b) { return a.deadline < b.deadline; };
    watched_.insert(std::upper_bound(watched_.begin(), watched_.end(), watched, later), watched);
  }
  changed_.NotifyAll();
}

void GroupCore::CheckTimeout(const std::shared_ptr<Pending>& run) {
  const std::string wait = run->DescribeWait();
  if (wait.empty()) return;
  Fail(Status(Code::kDeadlineExceeded,
              StrCat("[collective] ", run->Describe(), " has not ended within ", options_.timeout.count(),
                     " ms: ", DescribeProcess(own_process_), " ", wait)));
}

std::vector<std::shared_ptr<Pending>> GroupCore::UnderWay() {
  std::vector<std::shared_ptr<Pending>> all;
  for (const auto& member : members_) member->AddUnderWay(all);
  meetings_.AddUnderWay(all);
  if (gloo_ != nullptr) gloo_->AddUnderWay(all);
  return all;
}

void GroupCore::WatchLoop() {
  const auto interval = options_.late_interval;
  LateCalls late;
  auto look = interval.count() > 0 ? Clock::now() + interval : Clock::time_point::max();
  for (;;) {
    std::shared_ptr<Pending> overdue;
    bool looks = false;
    {
      MutexLock lock(mu_);
      if (closed_) return;
      while (!watched_.empty() && watched_.front().run.expired()) watched_.pop_front();
      const auto deadline = watched_.empty() ? Clock::time_point::max() : watched_.front().deadline;
      const auto now = Clock::now();
      looks = now >= look;
      if (now >= deadline) {
        overdue = watched_.front().run.lock();
        watched_.pop_front();
      } else if (!looks) {
        const auto until = std::min(look, deadline);
        // Close ends it.
        until == Clock::time_point::max() ? changed_.Wait(mu_) : static_cast<void>(changed_.WaitUntil(mu_, until));
        continue;
      }
    }
    if (overdue != nullptr) CheckTimeout(overdue);
    if (!looks) continue;
    late.Look(StrCat("group ", options_.key, ", generation ", options_.generation), interval, UnderWay());
    look = Clock::now() + interval;
  }
}

}  // namespace cohort::collective
