// ScheduleBook: by which schedules the members of a group run, and which of those agree. Each message of a collective
// names its sender's schedule by the fingerprint; where that is not the receiver's, the lists are compared, once: the
// receiver sends its own, the sender fails the group where they differ, or answers that they agree. Internal to
// collective/.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "cohort/collective/messages.h"
#include "cohort/collective/schedule.h"
#include "cohort/core/mutex.h"

namespace cohort::collective {

class GroupCore;

// Thread-safe.
class ScheduleBook {
 public:
  explicit ScheduleBook(GroupCore& core) : core_(core) {}

  // A member of this process runs by it.
  void Know(int rank, const std::shared_ptr<const Schedule>& schedule) EXCLUDES(mu_);
  // Whether `rank`, of this process, may end what it runs by `ours` together with what `other` runs by `theirs`; both
  // are fingerprints, 0 where a call belongs to no graph. False where the group has failed for it (always so where
  // `other` is of this process too), or where `other` is being asked: then GroupCore::OnSchedulesAgree is called, or
  // the group fails, or `other` is gone.
  bool Agree(int rank, uint64_t ours, int other, uint64_t theirs) EXCLUDES(mu_);
  // Throws DataLossError where it names a schedule that its receiver has not.
  void OnMessage(const ScheduleMessage& message) EXCLUDES(mu_);

 private:
  using Key = std::tuple<int, uint64_t, int, uint64_t>;  // rank, ours, other, theirs

  std::shared_ptr<const Schedule> Find(int rank, uint64_t fingerprint) EXCLUDES(mu_);
  void SetAgreed(const Key& key) EXCLUDES(mu_);
  // False where they differ; the group has failed then.
  bool Compare(int rank, const std::vector<ScheduleEntry>& ours, int other, const std::vector<ScheduleEntry>& theirs);

  GroupCore& core_;
  Mutex mu_;
  std::map<std::pair<int, uint64_t>, std::shared_ptr<const Schedule>> known_ GUARDED_BY(mu_);
  std::map<Key, bool> agreed_ GUARDED_BY(mu_);  // false: it is being asked
};

}  // namespace cohort::collective
