#include "cohort/checkpoint/checkpoint_rotation.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {

CheckpointRotation::CheckpointRotation(int max_to_keep, double keep_checkpoint_every_n_hours, double start_time)
    : max_to_keep_(max_to_keep),
      interval_s_(keep_checkpoint_every_n_hours * 3600),
      next_keep_time_(start_time + keep_checkpoint_every_n_hours * 3600) {
  if (max_to_keep >= 0 && keep_checkpoint_every_n_hours >= 0) return;
  throw InvalidArgumentError(StrCat("[checkpoint] max_to_keep and keep_checkpoint_every_n_hours must be >= 0; got ",
                                    max_to_keep, " and ", keep_checkpoint_every_n_hours));
}

std::vector<std::string> CheckpointRotation::Add(const std::string& prefix, double time) {
  std::erase_if(kept_, [&](const auto& one) { return one.first == prefix; });
  kept_.emplace_back(prefix, time);
  if (max_to_keep_ == 0) {
    kept_.erase(kept_.begin(), kept_.end() - 1);
    return {};
  }
  std::vector<std::string> doomed;
  while (kept_.size() > static_cast<size_t>(max_to_keep_)) {
    const auto [oldest, saved_at] = kept_.front();
    kept_.erase(kept_.begin());
    if (saved_at > next_keep_time_) {
      next_keep_time_ += interval_s_;
    } else {
      doomed.push_back(oldest);
    }
  }
  return doomed;
}

std::vector<std::string> CheckpointRotation::StatePaths() const {
  std::vector<std::string> paths;
  for (const auto& [prefix, time] : kept_) paths.push_back(prefix);
  return paths;
}

}  // namespace cohort
