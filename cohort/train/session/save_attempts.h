// SaveAttempts: what becomes of checkpoints that cannot be written.
#pragma once

#include <functional>
#include <string>

#include "cohort/core/export.h"

namespace cohort::train {

// Counts the checkpoints in a row that could not be written. Whoever saves owns one. Only one thread may use it.
class COHORT_EXPORT SaveAttempts {
 public:
  // `limit` is the number in a row that ends the training, `who` the name in the log. Throws InvalidArgumentError if
  // `limit` is less than 1.
  SaveAttempts(int limit, std::string who);
  // Calls `save` and returns true. If the files cannot be written (for example because the disk is full), logs a
  // warning and returns false; throws the error if it is the `limit`-th in a row. Throws all other errors of `save`,
  // such as those of a lost task.
  bool Try(const std::function<void()>& save);

 private:
  const int limit_;
  const std::string who_;
  int failed_ = 0;
};

}  // namespace cohort::train
