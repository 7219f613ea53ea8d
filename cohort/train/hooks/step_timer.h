// StepTimer: decides at which steps a hook does its work. It follows TensorFlow's SecondOrStepTimer.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/train/clock.h"

namespace cohort::train {

// How often a hook does its work. Exactly one of the two must be set.
struct COHORT_EXPORT Every {
  std::optional<int64_t> steps;
  std::optional<std::chrono::milliseconds> interval;
};

// A hook owns it. Used by one thread.
class COHORT_EXPORT StepTimer {
 public:
  // Throws InvalidArgumentError, which names `owner`, unless exactly one of the two is set, to more than 0.
  StepTimer(const Every& every, const std::string& owner);

  // Returns whether the work is due at `step`: it was never done, or it was done before this step, and the steps or the
  // time since then are enough.
  bool ShouldTrigger(int64_t step) const;
  // Remembers that the work was done at `step`. `elapsed` is the time, and `steps` the number of steps, since it was
  // done before; nullopt the first time.
  struct Since {
    Clock::duration elapsed;
    int64_t steps;
  };
  std::optional<Since> Update(int64_t step);
  // Returns the step of the latest Update; nullopt if there was none.
  std::optional<int64_t> last_step() const { return last_step_; }
  // Forgets all updates.
  void Reset() { last_step_.reset(); }

 private:
  Every every_;
  std::optional<int64_t> last_step_;
  Clock::time_point last_time_;
};

}  // namespace cohort::train
