#include "cohort/collective/group_registry.h"

#include "cohort/cluster/cluster_node.h"
#include "cohort/collective/group_core.h"
#include "cohort/collective/group_place.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {
namespace {

// Of one connection; a peer that begins more groups than that before this process joins one is not sane.
constexpr size_t kMaxEarlyJoins = 1000;
constexpr size_t kMaxFailedGroups = 1000;

Status Superseded(const GroupRef& ours, const GroupRef& later, const std::string& who) {
  return Status(Code::kAborted, StrCat("[collective] ", who, " is in generation ", later.generation, " of group ",
                                       ours.key, "; generation ", ours.generation, " is over: join the new one"));
}

}  // namespace

void RegisterCollectiveService() {
  NodeServices::Global().Register(kFirstServiceKind, kLastKind,
                                  [](ClusterNode& node) { return std::make_unique<GroupRegistry>(node); });
}

GroupRegistry::GroupRegistry(ClusterNode& node)
    : joiner_(node.local_task() != nullptr ? std::make_shared<GroupJoiner>(node) : nullptr) {
  if (joiner_ != nullptr) joiner_->AddTo(node.local_task()->resources(), joiner_);
}

GroupRegistry* GroupRegistry::Of(ClusterNode& node) {
  return dynamic_cast<GroupRegistry*>(node.FindService(kFirstServiceKind));
}

void FailedGroups::Add(const GroupRef& ref, const Status& why) {
  MutexLock lock(mu_);
  failed_[ref] = why;
  if (failed_.size() > kMaxFailedGroups) failed_.erase(failed_.begin());
}

void FailedGroups::Forget(const GroupRef& ref) {
  MutexLock lock(mu_);
  failed_.erase(ref);
}

Status FailedGroups::Find(const GroupRef& ref) const {
  MutexLock lock(mu_);
  const auto it = failed_.find(ref);
  return it == failed_.end() ? Status() : it->second;
}

void GroupRegistry::Add(const std::shared_ptr<GroupCore>& core) {
  std::vector<Early> waiting;
  const GroupRef ref = core->ref();
  const std::string own = core->tasks()[static_cast<size_t>(core->own_process())];
  EndEarlier(ref, own);
  failed_->Forget(ref);
  core->TellFailure(failed_);
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
    for (auto it = early_.begin(); it != early_.end();) {
      if (it->join.group.key == ref.key && it->join.group.generation > ref.generation) {
        over = Superseded(ref, it->join.group, it->join.task);
      }
      if (it->join.group != ref) {
        ++it;
        continue;
      }
      waiting.push_back(std::move(*it));
      it = early_.erase(it);
    }
  }
  if (!over.ok()) core->Fail(over);
  for (const Early& early : waiting) core->OnJoin(early.connection, early.join);
}

bool GroupRegistry::Fail(int64_t key, const Status& why) {
  bool any = false;
  for (const auto& core : All()) {
    if (core->ref().key != key) continue;
    any = true;
    core->Fail(why);
  }
  return any;
}

void GroupRegistry::EndEarlier(const GroupRef& ref, const std::string& who) {
  for (const auto& core : All()) {
    const GroupRef other = core->ref();
    if (other.key == ref.key && other.generation < ref.generation) core->Fail(Superseded(other, ref, who));
  }
}

std::shared_ptr<GroupCore> GroupRegistry::Find(const GroupRef& ref) {
  MutexLock lock(mu_);
  const auto it = groups_.find(ref);
  if (it == groups_.end()) return nullptr;
  auto core = it->second.lock();
  if (core == nullptr) groups_.erase(it);
  return core;
}

std::vector<std::shared_ptr<GroupCore>> GroupRegistry::All() {
  std::vector<std::shared_ptr<GroupCore>> all;
  MutexLock lock(mu_);
  for (const auto& [ref, place] : groups_) {
    if (auto core = place.lock()) all.push_back(std::move(core));
  }
  return all;
}

void GroupRegistry::OnJoin(const std::shared_ptr<Connection>& connection, JoinMessage join) {
  EndEarlier(join.group, join.task);
  Status refused = failed_->Find(join.group);
  std::vector<std::shared_ptr<GroupCore>> alive;  // outlives the lock
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
        refused = Superseded(join.group, ref, found->tasks()[static_cast<size_t>(found->own_process())]);
      }
    }
    if (core == nullptr && refused.ok()) {
      if (early_.size() >= kMaxEarlyJoins) {
        throw InvalidArgumentError("[collective] too many groups that nobody here joins");
      }
      early_.push_back({connection, std::move(join)});
      return;
    }
  }
  if (core != nullptr) return core->OnJoin(connection, join);
  connection->Send(EncodeAbort({join.group, refused}));
}

void GroupRegistry::ForgetEarly(const std::shared_ptr<Connection>& connection, const GroupRef* ref) {
  MutexLock lock(mu_);
  std::erase_if(early_, [&](const Early& early) {
    return early.connection == connection && (ref == nullptr || early.join.group == *ref);
  });
}

void GroupRegistry::OnMessage(const std::shared_ptr<Connection>& connection, Message message) {
  switch (static_cast<Kind>(message.kind)) {
    case Kind::kJoin: return OnJoin(connection, DecodeJoin(message));
    case Kind::kData: {
      const DataMessage data = DecodeData(message);
      // Of a group that has been left: its members have been told.
      if (const auto core = Find(data.group)) core->OnData(data, std::move(message.tensors[0]), true);
      return;
    }
    case Kind::kAbort: {
      const AbortMessage abort = DecodeAbort(message);
      if (const auto core = Find(abort.group)) core->OnAbort(abort);
      return;
    }
    case Kind::kLeave: {
      const LeaveMessage leave = DecodeLeave(message);
      if (const auto core = Find(leave.group)) return core->OnLeave(connection, leave);
      return ForgetEarly(connection, &leave.group);
    }
    case Kind::kFarewell: {
      const FarewellMessage farewell = DecodeFarewell(message);
      if (const auto core = Find(farewell.group)) core->OnFarewell(connection);
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

void GroupRegistry::OnClosed(const std::shared_ptr<Connection>& connection, const Status& why) {
  ForgetEarly(connection, nullptr);
  for (const auto& core : All()) core->OnClosed(connection, why);
}

void GroupRegistry::OnStop(const Status& why) {
  {
    MutexLock lock(mu_);
    early_.clear();
    stopped_ = why;
  }
  for (const auto& core : All()) core->Leave(why);
  if (joiner_ != nullptr) joiner_->Close();
}

}  // namespace cohort::collective
