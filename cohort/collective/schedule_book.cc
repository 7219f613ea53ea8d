#include "cohort/collective/schedule_book.h"

#include "cohort/collective/group_core.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {

void ScheduleBook::Know(int rank, const std::shared_ptr<const Schedule>& schedule) {
  MutexLock lock(mu_);
  known_[{rank, schedule->fingerprint}] = schedule;
}

std::shared_ptr<const Schedule> ScheduleBook::Find(int rank, uint64_t fingerprint) {
  MutexLock lock(mu_);
  const auto found = known_.find({rank, fingerprint});
  return found == known_.end() ? nullptr : found->second;
}

void ScheduleBook::SetAgreed(const Key& key) {
  MutexLock lock(mu_);
  agreed_[key] = true;
}

bool ScheduleBook::Compare(int rank, const std::vector<ScheduleEntry>& ours, int other,
                           const std::vector<ScheduleEntry>& theirs) {
  const auto difference = FindDifference(ours, theirs, Names::kDoNotCount);
  if (!difference) return true;
  core_.Fail(Status(Code::kInvalidArgument,
                    StrCat("[collective] ", core_.DescribeRank(other), " does not agree with ",
                           core_.DescribeRank(rank), " on the collectives of a step with group ", core_.ref().key,
                           ", generation ", core_.ref().generation, ": number ", difference->number,
                           " of its schedule is ", difference->theirs, "; at ", core_.DescribeRank(rank), " it is ",
                           difference->ours, "; build the same graph and run the same of it at every member")));
  return false;
}

bool ScheduleBook::Agree(int rank, uint64_t ours, int other, uint64_t theirs) {
  if (ours == theirs || ours == 0 || theirs == 0) return true;
  const Key key = {rank, ours, other, theirs};
  const bool elsewhere = core_.process_of(other) != core_.own_process();
  {
    MutexLock lock(mu_);
    const auto known = agreed_.find(key);
    if (known != agreed_.end()) return known->second;
    if (elsewhere) agreed_[key] = false;
  }
  const auto own = Find(rank, ours);
  if (elsewhere) {
    core_.SendSchedule({core_.ref(), rank, other, ours, theirs, false, own->entries});
    return false;
  }
  if (!Compare(rank, own->entries, other, Find(other, theirs)->entries)) return false;
  SetAgreed(key);
  return true;
}

void ScheduleBook::OnMessage(const ScheduleMessage& message) {
  const auto own = Find(message.to, message.theirs);
  if (own == nullptr) {
    throw DataLossError(StrCat("[collective] a message to rank ", message.to, " names a schedule that it has not"));
  }
  if (!message.agreed) {
    if (!Compare(message.to, own->entries, message.from, message.entries)) return;
    core_.SendSchedule({core_.ref(), message.to, message.from, message.theirs, message.ours, true, {}});
  }
  SetAgreed({message.to, message.theirs, message.from, message.ours});
  core_.OnSchedulesAgree();
}

}  // namespace cohort::collective
