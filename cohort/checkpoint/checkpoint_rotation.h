// Which checkpoints to keep, by the rules of TensorFlow's Saver. No files are touched here.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"

namespace cohort {

// Not thread-safe. Times are seconds since 1970.
class COHORT_EXPORT CheckpointRotation {
 public:
  using Kept = std::vector<std::pair<std::string, double>>;  // prefix, time of saving; oldest first

  // max_to_keep 0 keeps all. A checkpoint that would be deleted stays on disk for good if it was saved after
  // `start_time` plus that many hours, plus once more the hours for each that stayed before. Throws
  // InvalidArgumentError for negative arguments.
  CheckpointRotation(int max_to_keep, double keep_checkpoint_every_n_hours, double start_time);

  // Notes a checkpoint just saved and returns the prefixes to delete (after the state file was written).
  // Saving under a prefix again moves it to the end.
  std::vector<std::string> Add(const std::string& prefix, double time);

  // What the state file lists: all that are kept, oldest first; with max_to_keep 0 only the last.
  std::vector<std::string> StatePaths() const;

  const Kept& kept() const { return kept_; }
  // Takes over what an earlier process kept (from the state file and the files' times), oldest first. More
  // than max_to_keep are deleted as new ones come.
  void Recover(Kept kept) { kept_ = std::move(kept); }

 private:
  const int max_to_keep_;
  const double interval_s_;
  double next_keep_time_;
  Kept kept_;
};

}  // namespace cohort
