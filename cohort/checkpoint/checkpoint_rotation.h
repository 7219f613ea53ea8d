// CheckpointRotation: decides which checkpoints to keep, by the rules of TensorFlow's Saver. It touches no files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"

namespace cohort {

// The list of kept checkpoints of one Saver, which owns it. Not thread-safe. Times are seconds since 1970.
class COHORT_EXPORT CheckpointRotation {
 public:
  using Kept = std::vector<std::pair<std::string, double>>;  // prefix and time of saving; oldest first

  // `max_to_keep` 0 keeps all. If there are more than `max_to_keep`, the oldest is removed from the list. It is deleted
  // from disk unless it was saved more than `keep_checkpoint_every_n_hours` after `start_time`; each checkpoint that
  // stays on disk for good moves this limit by the same number of hours. Throws InvalidArgumentError for negative
  // arguments.
  CheckpointRotation(int max_to_keep, double keep_checkpoint_every_n_hours, double start_time);

  // Adds a checkpoint that was just saved. Returns the prefixes of the checkpoints to delete, which the caller does
  // after it has written the state file. If the prefix is already in the list, it moves to the end.
  std::vector<std::string> Add(const std::string& prefix, double time);

  // Returns the paths for the state file: all kept checkpoints, oldest first, or only the last one if `max_to_keep` is
  // 0.
  std::vector<std::string> StatePaths() const;

  const Kept& kept() const { return kept_; }
  // Replaces the list by the checkpoints of an earlier process, oldest first. If they are more than `max_to_keep`, the
  // next Add removes the oldest.
  void Recover(Kept kept) { kept_ = std::move(kept); }

 private:
  const int max_to_keep_;
  const double interval_s_;
  double next_keep_time_;
  Kept kept_;
};

}  // namespace cohort
