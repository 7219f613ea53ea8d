// The clock of training loops, which never jumps. Options with seconds as double are converted to its durations.
#pragma once

#include <chrono>

namespace cohort::train {

using Clock = std::chrono::steady_clock;

inline Clock::duration DurationOf(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace cohort::train
