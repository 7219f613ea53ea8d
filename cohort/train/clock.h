// Time in training loops: options have it as seconds in double, waits as durations of a clock that never jumps.
#pragma once

#include <chrono>

namespace cohort::train {

using Clock = std::chrono::steady_clock;

inline Clock::duration DurationOf(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace cohort::train
