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

  // If `max_to_keep` is 0, no checkpoint is ever deleted, and Add leaves only the newest one in the list. Otherwise Add
  // removes the oldest checkpoints from the list until it has `max_to_keep`. A removed checkpoint stays on disk for
  // good if it was saved after the keep time. If not, Add returns it, and the caller must delete it. The keep time is
  // at first `start_time` plus `keep_checkpoint_every_n_hours`. Each time that a removed checkpoint stays on disk for
  // good, the keep time becomes later by `keep_checkpoint_every_n_hours`. Throws InvalidArgumentError if `max_to_keep`
  // or `keep_checkpoint_every_n_hours` is negative.
  CheckpointRotation(int max_to_keep, double keep_checkpoint_every_n_hours, double start_time);

  // Adds a checkpoint that was just saved. If its prefix is already in the list, the prefix moves to the end. Returns
  // the prefixes of the checkpoints that the caller must delete from disk, after it has written the state file.
  std::vector<std::string> Add(const std::string& prefix, double time);

  // Returns the paths for the state file: the prefixes in the list, oldest first.
  std::vector<std::string> StatePaths() const;

  const Kept& kept() const { return kept_; }
  // Replaces the list by the checkpoints of an earlier process, oldest first. The list may be longer than
  // `max_to_keep`; the next Add shortens it.
  void Recover(Kept kept) { kept_ = std::move(kept); }

 private:
  const int max_to_keep_;
  const double interval_s_;
  double next_keep_time_;
  Kept kept_;
};

}  // namespace cohort
