#include "cohort/collective/schedule_agreement.h"

#include "cohort/collective/group_core.h"
#include "cohort/core/str_cat.h"

namespace cohort::collective {

void ScheduleAgreement::Add(int rank, const std::shared_ptr<const StepSchedule>& schedule) {
  MutexLock lock(mu_);
  known_[{rank, schedule->fingerprint}] = schedule;
}

std::shared_ptr<const StepSchedule> ScheduleAgreement::Find(int rank, uint64_t fingerprint) {
  MutexLock lock(mu_);
  const auto found = known_.find({rank, fingerprint});
  return found == known_.end() ? nullptr : found->second;
}

void ScheduleAgreement::SetAgreed(const Pair& pair) {
  MutexLock lock(mu_);
  agreed_[pair] = true;
}

bool ScheduleAgreement::Compare(int rank, const std::vector<ScheduleEntry>& ours, int other,
                                const std::vector<ScheduleEntry>& theirs) {
  const auto difference = FindDifference(ours, theirs, NameCheck::kIgnore);
  if (!difference) return true;
  const MemberList& members = core_.members();
  core_.Fail(
      Status(Code::kInvalidArgument,
             StrCat("[collective] ", members.DescribeRank(other), " does not agree with ", members.DescribeRank(rank),
                    " on the collectives of a step with ", core_.membership().Describe(), ": number ",
                    difference->number, " of its schedule is ", difference->theirs, "; at ", members.DescribeRank(rank),
                    " it is ", difference->ours, "; build the same graph and run the same of it at every member")));
  return false;
}

bool ScheduleAgreement::Agree(int rank, uint64_t ours, int other, uint64_t theirs) {
  if (ours == theirs || ours == 0 || theirs == 0) return true;
  const Pair pair = {rank, ours, other, theirs};
  const bool elsewhere = core_.members().local_index(other) < 0;
  {
    MutexLock lock(mu_);
    const auto known = agreed_.find(pair);
    if (known != agreed_.end()) return known->second;
    if (elsewhere) agreed_[pair] = false;
  }
  const auto own = Find(rank, ours);
  if (elsewhere) {
    core_.SendSchedule({core_.membership().ref(), rank, other, ours, theirs, false, own->entries});
    return false;
  }
  if (!Compare(rank, own->entries, other, Find(other, theirs)->entries)) return false;
  SetAgreed(pair);
  return true;
}

bool ScheduleAgreement::OnMessage(const ScheduleMessage& message) {
  const auto own = Find(message.to, message.theirs);
  if (own == nullptr) {
    throw DataLossError(StrCat("[collective] a message to rank ", message.to, " names a schedule that it has not"));
  }
  if (!message.agreed) {
    if (!Compare(message.to, own->entries, message.from, message.entries)) return false;
    core_.SendSchedule({core_.membership().ref(), message.to, message.from, message.theirs, message.ours, true, {}});
  }
  SetAgreed({message.to, message.theirs, message.from, message.ours});
  return true;
}

}  // namespace cohort::collective
