// ScheduleAgreement: the schedules of a group's members, and which of them agree. Internal to collective/.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "cohort/collective/messages.h"
#include "cohort/collective/schedule.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

class GroupCore;

// Compares the schedules of two members that run a collective together. Each message of a collective carries the
// fingerprint of its sender's schedule. If the receiver's schedule has another fingerprint, the entries of the two
// schedules are compared once. They may still agree, because a graph may not know a dimension (FindDifference). If both
// members are in this process, the receiver's thread compares them. Otherwise the receiver sends its entries to the
// sender, which fails the group with the first difference, or answers that the schedules agree. The group owns this
// object. Thread-safe.
class ScheduleAgreement {
 public:
  explicit ScheduleAgreement(GroupCore& core) : core_(core) {}

  // Adds a schedule of the local member `rank`.
  void Add(int rank, const std::shared_ptr<const StepSchedule>& schedule) COHORT_EXCLUDES(mu_);
  // Returns whether the schedule `ours` of the local member `rank` is known to agree with the schedule `theirs` of the
  // member `other`. Only then may a collective of the two members give its result. Both schedules are fingerprints; 0
  // means that the call is not part of a graph, and agrees with every schedule. Returns false if the schedules differ;
  // the group has then failed. Returns false also if `other` is in another process and has not answered yet. Then one
  // of three things follows: OnMessage returns true, the group fails, or `other` is gone without an answer. Requires:
  // Add was called for `ours`, and also for `theirs` if `other` is in this process.
  bool Agree(int rank, uint64_t ours, int other, uint64_t theirs) COHORT_EXCLUDES(mu_);
  // Handles a peer's schedule, or its answer that the schedules agree. Returns true if two schedules are now known to
  // agree. If they differ, fails the group and returns false. Throws DataLossError if the message names a
  // schedule that the receiving member does not have.
  bool OnMessage(const ScheduleMessage& message) COHORT_EXCLUDES(mu_);

 private:
  using Pair = std::tuple<int, uint64_t, int, uint64_t>;  // rank, ours, other, theirs

  std::shared_ptr<const StepSchedule> Find(int rank, uint64_t fingerprint) COHORT_EXCLUDES(mu_);
  void SetAgreed(const Pair& pair) COHORT_EXCLUDES(mu_);
  // Returns false if the schedules differ; the group has then failed.
  bool Compare(int rank, const std::vector<ScheduleEntry>& ours, int other, const std::vector<ScheduleEntry>& theirs);

  GroupCore& core_;
  Mutex mu_;
  std::map<std::pair<int, uint64_t>, std::shared_ptr<const StepSchedule>> known_
      COHORT_GUARDED_BY(mu_);                           // rank, fingerprint
  std::map<Pair, bool> agreed_ COHORT_GUARDED_BY(mu_);  // false: `other` is being asked
};

}  // namespace cohort::collective
