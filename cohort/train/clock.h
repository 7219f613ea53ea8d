// Time in training loops: waits are durations of a clock that never jumps.
#pragma once

#include <chrono>

namespace cohort::train {

using Clock = std::chrono::steady_clock;

// For messages.
inline double SecondsOf(std::chrono::milliseconds duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace cohort::train
