#include "cohort/train/hooks/step_timer.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::train {

StepTimer::StepTimer(const Every& every, const std::string& owner) : every_(every) {
  if (every.steps.has_value() == every.interval.has_value()) {
    throw InvalidArgumentError(StrCat("[", owner, "] expected exactly one of a number of steps and an interval; got ",
                                      every.steps.has_value() ? "both" : "none"));
  }
  if (every.steps && *every.steps <= 0) {
    throw InvalidArgumentError(StrCat("[", owner, "] expected a number of steps above 0; got ", *every.steps));
  }
  if (every.interval && every.interval->count() <= 0) {
    throw InvalidArgumentError(
        StrCat("[", owner, "] expected an interval above 0 ms; got ", every.interval->count(), " ms"));
  }
}

bool StepTimer::ShouldTrigger(int64_t step) const {
  if (!last_step_) return true;
  if (step == *last_step_) return false;
  if (every_.steps) return step >= *last_step_ + *every_.steps;
  return Clock::now() >= last_time_ + *every_.interval;
}

std::optional<StepTimer::Since> StepTimer::Update(int64_t step) {
  const Clock::time_point now = Clock::now();
  std::optional<Since> since;
  if (last_step_) since = Since{now - last_time_, step - *last_step_};
  last_step_ = step;
  last_time_ = now;
  return since;
}

}  // namespace cohort::train
