// SaveAttempts: what becomes of checkpoints that cannot be written.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "cohort/core/export.h"

namespace cohort::train {

// Counts the checkpoints in a row that could not be written. Failures count at most once a second, so that a training
// that saves at each step does not end because the disk is full for a moment. Whoever saves owns one. Only one thread
// may use it.
class COHORT_EXPORT SaveAttempts {
 public:
  using Clock = std::chrono::steady_clock;

  // `limit` is the number in a row that ends the training, `who` the name in the log. `now` returns the time. Throws
  // InvalidArgumentError if `limit` is less than 1.
  SaveAttempts(int limit, std::string who, std::function<Clock::time_point()> now = Clock::now);
  // Calls `save` and returns true. If the files cannot be written (for example because the disk is full), logs a
  // warning and returns false; throws the error if it is the `limit`-th in a row. A failure less than a second after
  // one that has counted does not count, and is logged as information. Throws all other errors of `save`, such as those
  // of a lost task.
  bool Try(const std::function<void()>& save);

 private:
  const int limit_;
  const std::string who_;
  const std::function<Clock::time_point()> now_;
  int failed_ = 0;                               // since the last success; those that count
  std::optional<Clock::time_point> counted_at_;  // the last of them
};

}  // namespace cohort::train
