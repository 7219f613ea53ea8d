// GroupCore. Messages come in by the On functions, which update the membership and pass work to the engine and to the
// schedule agreement. A failure (Fail) is recorded, told to the peers, and then ends all calls in this process. Close
// leaves the group and joins its threads.
#include "cohort/collective/group_core.h"

#include <algorithm>
#include <thread>

#include "cohort/collective/group_failures.h"
#include "cohort/collective/member_communicator.h"
#include "cohort/core/logging.h"
#include "cohort/core/process/time_limit.h"
#include "cohort/core/str_cat.h"
#include "cohort/runtime/step_report.h"

namespace cohort::collective {

GroupCore::GroupCore(const GroupOptions& options, const std::string& own_task, const std::string& own_address,
                     std::weak_ptr<const DeviceSet> devices, bool only_protected)
    : options_(options),
      progress_limit_(ProgressLimit(options.progress_limit)),
      devices_(std::move(devices)),
      membership_(options, own_task),
      watchdog_(membership_.Describe(), {options.timeout, options.late_interval, progress_limit_},
                {[this] {
                   std::vector<std::shared_ptr<UnfinishedCollective>> all;
                   engine_->AppendUnfinished(all);
                   return all;
                 },
                 [this](const UnfinishedCollective& call, const std::string& wait) { OnTimeout(call, wait); },
                 [this](const UnfinishedCollective& call) { OnStuck(call); }, [this] { LookForHangs(); }}) {
  const auto cores = static_cast<size_t>(std::max(1u, std::thread::hardware_concurrency()));
  const size_t threads = std::min(cores, members().local_ranks().size());
  workers_ = std::make_unique<ThreadPool>("cohort-reduce", static_cast<int>(threads));
  engine_ = MakeEngine(*this, own_address, only_protected);
}

GroupCore::~GroupCore() { Close(Status(Code::kCancelled, "the group is gone")); }

std::shared_ptr<Device> GroupCore::device(int rank) const {
  const std::shared_ptr<const DeviceSet> devices = devices_.lock();
  Device* const found = devices == nullptr ? nullptr : devices->Find(members().devices()[static_cast<size_t>(rank)]);
  return found == nullptr ? nullptr : std::shared_ptr<Device>(devices, found);
}

void GroupCore::Start() {
  for (size_t local = 0; local < members().local_ranks().size(); ++local) {
    communicators_.push_back(std::make_shared<MemberCommunicator>(shared_from_this(), members().local_ranks()[local]));
  }
  watchdog_.Start();
}

JoinMessage GroupCore::OwnJoin() const {
  return {membership_.ref(), members().own_task(), membership_.own_host(), members().devices(),
          options_.schedule, options_.algorithm,   engine_->Endpoints()};
}

std::string GroupCore::DescribeDifference(const JoinMessage& join, int process) const {
  if (join.members != members().devices()) {
    return StrCat("its members are ", StrJoin(join.members, ", "), "; here they are ",
                  StrJoin(members().devices(), ", "));
  }
  if (join.algorithm != options_.algorithm) {
    return StrCat("its algorithm is ", AlgorithmName(join.algorithm), "; here it is ",
                  AlgorithmName(options_.algorithm));
  }
  if (const auto difference = FindDifference(options_.schedule, join.schedule, NameCheck::kCompare)) {
    return StrCat("collective number ", difference->number, " of its schedule is ", difference->theirs, "; here it is ",
                  difference->ours);
  }
  if (process < 0) return "it is none of the members";
  const size_t endpoints = engine_->NumEndpointsOf(process);
  if (join.endpoints.size() == endpoints) return "";
  return StrCat("it has ", join.endpoints.size(), " addresses for ", AlgorithmName(options_.algorithm), ", not ",
                endpoints);
}

void GroupCore::SendJoin(int process, const std::shared_ptr<Connection>& connection) {
  membership_.SetConnection(process, connection);
  connection->Send(EncodeJoin(OwnJoin()));
  if (connection->closed()) OnClosed(connection, Status(Code::kUnavailable, "the connection was closed"));
}

void GroupCore::OnJoin(const std::shared_ptr<Connection>& connection, const JoinMessage& join) {
  const int process = members().FindProcess(join.task);
  const std::string difference = DescribeDifference(join, process);
  if (!difference.empty()) {
    Fail(Status(
        Code::kInvalidArgument,
        StrCat("[collective] ", join.task, " does not agree with ", members().DescribeProcess(members().own_process()),
               " on ", membership_.Describe(), ": ", difference, "; build the same graph at every member")));
  }
  if (!status().ok()) return AnswerLate(connection, join);
  if (!membership_.HasOurJoin(process)) SendJoin(process, connection);
  if (membership_.RecordJoin(process, join)) return;
  Fail(Status(Code::kAborted,
              StrCat("[collective] ", members().DescribeProcess(process), " joined ", membership_.Describe(),
                     " again: it was restarted; join a new generation at every member")));
  AnswerLate(connection, join);  // Fail has told the process before it
}

void GroupCore::AnswerLate(const std::shared_ptr<Connection>& connection, const JoinMessage& join) {
  const std::optional<uint64_t> before = membership_.FormedWith(join.task);
  if (before && *before != connection->peer().incarnation) {
    MutexLock lock(mu_);
    if (!hang_watch_.told()) {
      late_joins_.push_back(connection);
      return;
    }
  }
  connection->Send(EncodeAbort({membership_.ref(), status()}));
}

void GroupCore::OnProgramTold() {
  if (!hang_watch_.OnTold()) return;
  std::vector<std::shared_ptr<Connection>> late;
  {
    MutexLock lock(mu_);
    late.swap(late_joins_);
  }
  for (const auto& connection : late) connection->Send(EncodeAbort({membership_.ref(), status()}));
}

void GroupCore::LookForHangs() {
  const Status hung = hang_watch_.FindHungMember();
  if (!hung.ok()) Fail(hung);
  hang_watch_.LookAtProgram();
}

void GroupCore::AwaitFormed(const std::function<bool()>& reach, std::chrono::steady_clock::time_point deadline,
                            std::chrono::steady_clock::duration log_interval) {
  const Status lost = membership_.AwaitAll(reach, deadline, log_interval);  // if it throws, the caller closes the group
  if (!lost.ok()) Fail(lost);  // processes that join later may never have seen the lost one
  lost.ThrowIfError();
  std::vector<std::vector<std::string>> endpoints = membership_.Endpoints();
  endpoints[static_cast<size_t>(members().own_process())] = engine_->Endpoints();
  engine_->Connect(endpoints);
}

void GroupCore::OnData(const DataMessage& data, Tensor tensor, bool may_compute_inline) {
  const int size = members().size();
  if (data.from < 0 || data.from >= size || data.to < 0 || data.to >= size || members().local_index(data.to) < 0) {
    throw DataLossError(StrCat("[collective] a message from rank ", data.from, " to rank ", data.to,
                               " came to a process without the latter"));
  }
  engine_->Deliver(data, std::move(tensor), may_compute_inline);
}

void GroupCore::Post(DataMessage data, Tensor tensor) {
  data.group = membership_.ref();
  if (members().local_index(data.to) >= 0) return OnData(data, std::move(tensor), false);
  if (const auto connection = membership_.ConnectionTo(members().process_of(data.to))) {
    connection->Send(EncodeData(data, std::move(tensor)));
  }
}

void GroupCore::SendSchedule(const ScheduleMessage& message) {
  if (const auto connection = membership_.ConnectionTo(members().process_of(message.to))) {
    connection->Send(EncodeSchedule(message));
  }
}

void GroupCore::OnSchedule(const ScheduleMessage& message) {
  const int size = members().size();
  if (message.from < 0 || message.from >= size || message.to < 0 || message.to >= size) {
    throw DataLossError(
        StrCat("[collective] the schedule of rank ", message.from, " came for rank ", message.to, " of ", size));
  }
  if (schedules_.OnMessage(message)) engine_->OnSchedulesAgreed();
}

void GroupCore::RunOnWorker(std::function<void()> work) {
  {
    MutexLock lock(mu_);
    if (!closed_) return workers_->Schedule(std::move(work));
  }
  work();  // the group is closed: this only ends a call
}

bool GroupCore::FailHere(const Status& why) {
  if (!membership_.SetFailed(why)) return false;
  hang_watch_.OnFailed();
  std::vector<std::shared_ptr<UnfinishedCollective>> calls;
  engine_->AppendUnfinished(calls);
  if (std::ranges::any_of(calls, [](const auto& call) { return !call->DescribeWait().empty(); })) OnProgramTold();
  calls.clear();
  engine_->Fail(why);
  return true;
}

void GroupCore::Fail(const Status& why) {
  if (!status().ok()) return;
  if (failures_ != nullptr) failures_->Add(membership_.ref(), why);
  // The peers are told first. Otherwise a call could end here, and its caller close connections, before the peers know
  // the cause; they would then report the closed connections as a second one.
  for (const auto& connection : membership_.Connections()) connection->Send(EncodeAbort({membership_.ref(), why}));
  if (FailHere(why)) LogDebug("collective", "group ", options_.key, " has failed: ", why.ToString());
}

void GroupCore::SetGone(int process, const Status& why) {
  if (membership_.SetGone(process, why)) engine_->OnPeerGone();
}

void GroupCore::OnLeave(const std::shared_ptr<Connection>& connection, const LeaveMessage& leave) {
  const int process = membership_.RecordLeave(connection);
  if (process < 0) return;
  SetGone(process,
          Status(Code::kUnavailable,
                 StrCat("[collective] ", members().DescribeProcess(process), " has left ", membership_.Describe(),
                        leave.failed_before.ok()
                            ? ""
                            : StrCat(", after another group of it had failed: ", leave.failed_before.ToString()))));
  engine_->OnPeerLeft(process);
}

void GroupCore::SendFarewell(int process) {
  if (const auto connection = membership_.ConnectionTo(process)) connection->Send(EncodeFarewell({membership_.ref()}));
}

void GroupCore::OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) {
  const Membership::Closed closed = membership_.RecordClosed(connection);
  if (closed.process < 0) return;
  // A process that was lost before this one is probably the reason why this one has ended.
  const std::vector<std::string> others = membership_.LostProcesses(closed.process);
  const Status gone(why.code(), StrCat("[collective] ", members().DescribeProcess(closed.process), " of ",
                                       membership_.Describe(), " is lost: ", why.message(),
                                       others.empty() ? "" : StrCat("; gone before: ", StrJoin(others, ", "))));
  // A process that has left has sent all that others need from it.
  if (closed.lost) Fail(gone);
  SetGone(closed.process, gone);
}

void GroupCore::OnTimeout(const UnfinishedCollective& call, const std::string& wait) {
  Fail(Status(Code::kDeadlineExceeded,
              StrCat("[collective] ", call.Describe(), " has not ended within ", options_.timeout.count(),
                     " ms: ", members().DescribeProcess(members().own_process()), " ", wait)));
}

void GroupCore::SetQuestions(AskTask ask, HangWatch::Node node, bool held_by_program) {
  hang_watch_.SetNode(std::move(node), held_by_program);
  MutexLock lock(mu_);
  ask_task_ = std::move(ask);
}

void GroupCore::AppendWaits(std::vector<CollectiveWait>* waits) {
  std::vector<std::shared_ptr<UnfinishedCollective>> all;
  engine_->AppendUnfinished(all);
  for (const auto& call : all) {
    CollectiveWait wait{
        call->name(), StrCat(call->Describe(), " of ", membership_.Describe()), call->DescribeWait(), {}};
    if (wait.wait.empty()) continue;
    for (const int rank : call->AwaitedRanks()) {
      wait.peers.push_back(members().tasks()[static_cast<size_t>(members().process_of(rank))]);
    }
    waits->push_back(std::move(wait));
  }
}

void GroupCore::OnStuck(const UnfinishedCollective& call) {
  const std::optional<uint64_t> stamp = call.Stamp();
  const std::vector<int> awaited = call.AwaitedRanks();
  AskTask ask;
  {
    MutexLock lock(mu_);
    ask = ask_task_;
  }
  std::string answer;
  if (awaited.empty() || ask == nullptr || members().local_index(awaited.front()) >= 0) {
    answer = StrCat("the threads of this process:\n", StacksFor({}));
  } else {
    answer = ask(members().tasks()[static_cast<size_t>(members().process_of(awaited.front()))]);
  }
  const std::string wait = call.DescribeWait();
  if (wait.empty() || call.Stamp() != stamp || !status().ok()) return;
  while (answer.ends_with('\n')) answer.pop_back();
  Fail(Status(Code::kDeadlineExceeded,
              StrCat("[collective] ", call.Describe(), " has made no progress for ",
                     std::chrono::duration<double>(progress_limit_).count(),
                     " s (GroupOptions::progress_limit, COHORT_PROGRESS_LIMIT): ",
                     members().DescribeProcess(members().own_process()), " ", wait, ".\n", answer)));
}

void GroupCore::Leave(const Status& why) {
  OnProgramTold();
  if (status().ok()) {
    for (const auto& connection : membership_.Connections()) {
      connection->SendAfterAll(EncodeLeave({membership_.ref(), failures_ == nullptr ? Status() : failures_->Latest()}));
    }
    if (engine_->NeedsFarewells()) membership_.AwaitFarewells();
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
  watchdog_.Stop();
  std::unique_ptr<ThreadPool> workers;
  {
    MutexLock lock(mu_);
    workers = std::move(workers_);
  }
  if (!workers->IsOwnThread() && !watchdog_.IsOwnThread() && !engine_->IsOwnThread()) {
    watchdog_.Join();
    engine_->Join();
    return;
  }
  // The caller is a thread of the group: it held the last reference to it. Another thread waits for it.
  std::thread([core = shared_from_this(), workers = std::move(workers)]() mutable {
    core->watchdog_.Join();
    core->engine_->Join();
    workers.reset();
  }).detach();
}

}  // namespace cohort::collective
