#include "cohort/collective/turns/pending_arrivals.h"

#include <algorithm>

#include "cohort/core/str_cat.h"

namespace cohort::collective {

PendingArrivals::PendingArrivals(const EngineHost& host, std::string name, const CallId& id, int first,
                                 const CallSignature& signature)
    : host_(host),
      name_(std::move(name)),
      id_(id),
      first_(first),
      signature_(signature),
      arrived_(static_cast<size_t>(host.members().size())),
      schedule_fingerprints_(static_cast<size_t>(host.members().size())) {}

bool PendingArrivals::Arrive(int rank, const CallSignature& theirs, uint64_t schedule_fingerprint, Status* different) {
  MutexLock lock(mu_);
  if (!(theirs == signature_)) {
    *different =
        SignatureMismatch(Describe(), host_.members().DescribeRank(first_), host_.members().DescribeRank(rank), theirs);
    return false;
  }
  arrived_[static_cast<size_t>(rank)] = true;
  schedule_fingerprints_[static_cast<size_t>(rank)] = schedule_fingerprint;
  complete_ = std::find(arrived_.begin(), arrived_.end(), false) == arrived_.end();
  return complete_;
}

std::vector<uint64_t> PendingArrivals::ScheduleFingerprints() const {
  MutexLock lock(mu_);
  return complete_ ? schedule_fingerprints_ : std::vector<uint64_t>();
}

Status PendingArrivals::WhyNever() const {
  MutexLock lock(mu_);
  for (size_t rank = 0; rank < arrived_.size(); ++rank) {
    Status gone = arrived_[rank] && !complete_ ? Status() : host_.WhyGone(static_cast<int>(rank));
    if (!gone.ok()) return gone;
  }
  return {};
}

std::string PendingArrivals::DescribeWait() const {
  std::vector<std::string> missing;
  for (const int rank : AwaitedRanks()) missing.push_back(host_.members().DescribeRank(rank));
  return missing.empty() ? "" : StrCat("waits for ", StrJoin(missing, ", "));
}

std::optional<uint64_t> PendingArrivals::Stamp() const {
  MutexLock lock(mu_);
  return static_cast<uint64_t>(std::count(arrived_.begin(), arrived_.end(), true));
}

std::vector<int> PendingArrivals::AwaitedRanks() const {
  std::vector<int> missing;
  MutexLock lock(mu_);
  for (size_t rank = 0; rank < arrived_.size(); ++rank) {
    if (!arrived_[rank]) missing.push_back(static_cast<int>(rank));
  }
  return missing;
}

}  // namespace cohort::collective
