// GroupDirectory. A message is delivered to the GroupCore of its group (OnMessage). A join for a group that this
// process has not joined yet is kept (early_joins_) until Add. GroupFailures remembers why groups have failed, so that
// later joins get the reason as their answer. Joiner has the threads of JoinAsync.
#include "cohort/collective/group_directory.h"

#include <atomic>
#include <list>
#include <system_error>
#include <thread>

#include "cohort/cluster/cluster_node.h"
#include "cohort/collective/group_core.h"
#include "cohort/collective/group_failures.h"
#include "cohort/collective/kernel_group.h"
#include "cohort/core/deadline.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort::collective {
namespace {

// A limit, so that a faulty peer cannot fill the memory with early joins.
constexpr size_t kMaxEarlyJoins = 1000;

constexpr char kJoinerName[] = "joiner";

Status Superseded(const GroupRef& ours, const GroupRef& later, const std::string& who) {
  return Status(Code::kAborted, StrCat("[collective] ", who, " is in generation ", later.generation, " of group ",
                                       ours.key, "; generation ", ours.generation, " is over: join the new one"));
}

}  // namespace

// The threads of JoinAsync. The task's ResourceManager owns it, and JoinAsync finds it there. Thread-safe.
class GroupDirectory::Joiner final : public Resource {
 public:
  explicit Joiner(ClusterNode& node) : node_(node) {}
  ~Joiner() override { Close(); }

  std::string Describe() const override { return "the joiner of groups"; }

  void Join(GroupOptions options, Joined joined) COHORT_EXCLUDES(mu_) {
    std::list<Thread> ended;  // joined by their destructors after the lock, which takes no time
    Status status;
    {
      MutexLock lock(mu_);
      status = Begin(options, joined, &ended);
    }
    if (!status.ok()) joined(status, nullptr);
  }

  // Waits for the joins that have begun; later ones fail. Requires: the node stops.
  void Close() COHORT_EXCLUDES(mu_) {
    std::list<Thread> threads;  // joined by their destructors after the lock
    MutexLock lock(mu_);
    closed_ = true;
    threads.swap(threads_);
  }

 private:
  // A thread keeps its place in memory until it is joined. The destructor waits for the thread.
  struct Thread {
    std::atomic<bool> ended{false};
    std::jthread thread;
  };

  // Begins a join on a new thread. Moves the threads that have ended to `ended`. Returns why the join did not begin, or
  // ok.
  Status Begin(const GroupOptions& options, const Joined& joined, std::list<Thread>* ended) COHORT_REQUIRES(mu_) {
    if (closed_) return Status(Code::kUnavailable, "[collective] the server stops and joins no group any more");
    for (auto it = threads_.begin(); it != threads_.end();) {
      const auto next = std::next(it);
      if (it->ended) ended->splice(ended->end(), threads_, it);
      it = next;
    }
    std::list<Thread> begun(1);  // is not among threads_ if no thread can be made
    Thread& thread = begun.front();
    try {
      thread.thread = std::jthread([this, &thread, options, joined] {
        SetThreadName("cohort-join");
        JoinHere(options, joined);
        thread.ended = true;
      });
    } catch (const std::system_error& error) {
      return Status(Code::kResourceExhausted,
                    StrCat("[collective] expected a new thread that joins group ", options.key, "; got ", error.what(),
                           "; end other threads or raise the limit (ulimit -u)"));
    }
    threads_.splice(threads_.end(), begun);
    return {};
  }

  void JoinHere(const GroupOptions& options, const Joined& joined) {
    std::unique_ptr<Group> group;
    Status status;
    try {
      group = JoinGroup(node_, options, DeadlineAfter(node_.connect_timeout()));
    } catch (...) {
      status = Status::FromCurrentException();
    }
    joined(status, std::move(group));
  }

  ClusterNode& node_;
  Mutex mu_;
  bool closed_ COHORT_GUARDED_BY(mu_) = false;
  std::list<Thread> threads_ COHORT_GUARDED_BY(mu_);  // the next Join joins those that have ended
};

void RegisterCollectiveService() {
  NodeServices::Global().Register(kFirstServiceKind, kLastKind,
                                  [](ClusterNode& node) { return std::make_unique<GroupDirectory>(node); });
}

GroupDirectory::GroupDirectory(ClusterNode& node)
    : joiner_(node.local_task() != nullptr ? std::make_shared<Joiner>(node) : nullptr),
      failures_(std::make_shared<GroupFailures>()) {
  if (joiner_ == nullptr) return;
  node.local_task()->resources().LookupOrCreate<Joiner>(kCollectiveContainer, kJoinerName, [&] { return joiner_; });
}

GroupDirectory* GroupDirectory::Of(ClusterNode& node) {
  return dynamic_cast<GroupDirectory*>(node.FindService(kFirstServiceKind));
}

bool GroupDirectory::CanJoin(ResourceManager& resources) {
  return resources.Lookup(kCollectiveContainer, kJoinerName) != nullptr;
}

void GroupDirectory::JoinAsync(ResourceManager& resources, GroupOptions options, Joined joined) {
  const auto joiner = std::dynamic_pointer_cast<Joiner>(resources.Lookup(kCollectiveContainer, kJoinerName));
  joiner->Join(std::move(options), std::move(joined));
}

void GroupDirectory::Add(const std::shared_ptr<GroupCore>& core) {
  std::vector<EarlyJoin> waiting;
  const GroupRef ref = core->membership().ref();
  FailEarlierGenerations(ref, core->members().own_task());
  core->SetFailures(failures_);
  Status over;
  {
    MutexLock lock(mu_);
    stopped_.ThrowIfError();
    std::weak_ptr<GroupCore>& place = groups_[ref];
    if (place.lock() != nullptr) {
      throw AlreadyExistsError(
          StrCat("[collective] this process is in group ", ref.key, ", generation ", ref.generation));
    }
    place = core;
    for (auto it = early_joins_.begin(); it != early_joins_.end();) {
      if (it->join.group.key == ref.key && it->join.group.generation > ref.generation) {
        over = Superseded(ref, it->join.group, it->join.task);
      }
      if (it->join.group != ref) {
        ++it;
        continue;
      }
      waiting.push_back(std::move(*it));
      it = early_joins_.erase(it);
    }
  }
  failures_->OnJoined(ref);
  if (!over.ok()) core->Fail(over);
  for (const EarlyJoin& early : waiting) core->OnJoin(early.connection, early.join);
}

bool GroupDirectory::Fail(int64_t key, const Status& why) {
  bool any = false;
  for (const auto& core : All()) {
    if (core->membership().ref().key != key) continue;
    any = true;
    core->Fail(why);
    core->OnProgramTold();
  }
  return any;
}

Status GroupDirectory::CheckProcess(const GroupRef& ref, const TaskIdentity& peer) {
  if (ref.generation > 1) return {};
  Status other;
  for (const auto& core : All()) {
    const std::optional<uint64_t> process = core->membership().FormedWith(peer.task);
    if (process == peer.incarnation) return {};
    if (!process) continue;
    other = Status(Code::kAborted,
                   StrCat("[collective] group ", ref.key, ", generation ", ref.generation, ", cannot be formed: ",
                          peer.task, " (", peer.address, ") was started again after ", core->membership().Describe(),
                          " had formed with it, so it begins anew; start this process again, too, or join later "
                          "generations of both groups at every member"));
  }
  return other;
}

void GroupDirectory::FailEarlierGenerations(const GroupRef& ref, const std::string& who) {
  for (const auto& core : All()) {
    const GroupRef other = core->membership().ref();
    if (other.key == ref.key && other.generation < ref.generation) core->Fail(Superseded(other, ref, who));
  }
}

std::shared_ptr<GroupCore> GroupDirectory::Find(const GroupRef& ref) {
  MutexLock lock(mu_);
  const auto it = groups_.find(ref);
  if (it == groups_.end()) return nullptr;
  auto core = it->second.lock();
  if (core == nullptr) groups_.erase(it);
  return core;
}

std::vector<std::shared_ptr<GroupCore>> GroupDirectory::All() {
  std::vector<std::shared_ptr<GroupCore>> all;
  MutexLock lock(mu_);
  for (const auto& [ref, place] : groups_) {
    if (auto core = place.lock()) all.push_back(std::move(core));
  }
  return all;
}

void GroupDirectory::OnJoin(const std::shared_ptr<Connection>& connection, JoinMessage join) {
  FailEarlierGenerations(join.group, join.task);
  // Groups that wait for this task look whether this is the process that they wait for.
  for (const auto& waits : All()) waits->membership().Wake();
  Status refused = failures_->Find(join.group);
  std::vector<std::shared_ptr<GroupCore>> alive;  // released after the lock
  std::shared_ptr<GroupCore> core;
  {
    MutexLock lock(mu_);
    for (const auto& [ref, place] : groups_) {
      if (ref.key != join.group.key || ref.generation < join.group.generation) continue;
      const auto found = alive.emplace_back(place.lock());
      if (found == nullptr) continue;
      if (ref == join.group) {
        core = found;
      } else {
        refused = Superseded(join.group, ref, found->members().own_task());
      }
    }
    if (core == nullptr && refused.ok()) {
      if (early_joins_.size() >= kMaxEarlyJoins) {
        throw InvalidArgumentError("[collective] too many groups that nobody here joins");
      }
      early_joins_.push_back({connection, std::move(join)});
      return;
    }
  }
  if (core != nullptr) return core->OnJoin(connection, join);
  connection->Send(EncodeAbort({join.group, refused}));
}

void GroupDirectory::ForgetEarlyJoins(const std::shared_ptr<Connection>& connection, const GroupRef* ref) {
  MutexLock lock(mu_);
  std::erase_if(early_joins_, [&](const EarlyJoin& early) {
    return early.connection == connection && (ref == nullptr || early.join.group == *ref);
  });
}

void GroupDirectory::OnMessage(const std::shared_ptr<Connection>& connection, Message message) {
  switch (static_cast<Kind>(message.kind)) {
    case Kind::kJoin: return OnJoin(connection, DecodeJoin(message));
    case Kind::kData: {
      const DataMessage data = DecodeData(message);
      // Drops a message for a group that this process has left: its peers have been told.
      if (const auto core = Find(data.group)) core->OnData(data, std::move(message.tensors[0]), true);
      return;
    }
    case Kind::kAbort: {
      const AbortMessage abort = DecodeAbort(message);
      if (const auto core = Find(abort.group)) core->Fail(abort.why);
      return;
    }
    case Kind::kLeave: {
      const LeaveMessage leave = DecodeLeave(message);
      if (const auto core = Find(leave.group)) return core->OnLeave(connection, leave);
      return ForgetEarlyJoins(connection, &leave.group);
    }
    case Kind::kFarewell: {
      const FarewellMessage farewell = DecodeFarewell(message);
      if (const auto core = Find(farewell.group)) core->membership().RecordFarewell(connection);
      return;
    }
    case Kind::kSchedule: {
      const ScheduleMessage schedule = DecodeSchedule(message);
      if (const auto core = Find(schedule.group)) core->OnSchedule(schedule);
      return;
    }
  }
  throw InvalidArgumentError(StrCat("[collective] unknown message kind ", message.kind));
}

void GroupDirectory::OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) {
  ForgetEarlyJoins(connection, nullptr);
  for (const auto& core : All()) core->OnClosed(connection, why);
}

void GroupDirectory::AppendWaits(std::vector<CollectiveWait>* waits) {
  for (const auto& core : All()) core->AppendWaits(waits);
}

void GroupDirectory::OnStop(const Status& why) {
  {
    MutexLock lock(mu_);
    early_joins_.clear();
    stopped_ = why;
  }
  for (const auto& core : All()) core->Leave(why);
  if (joiner_ != nullptr) joiner_->Close();
}

}  // namespace cohort::collective
