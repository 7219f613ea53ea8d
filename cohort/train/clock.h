// The clock of training loops, which never jumps.
#pragma once

#include <chrono>

namespace cohort::train {

using Clock = std::chrono::steady_clock;

// For messages.
inline double SecondsOf(std::chrono::milliseconds duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace cohort::train
