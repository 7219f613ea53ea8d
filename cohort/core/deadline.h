// Deadlines from limits that users give.
#pragma once

#include <algorithm>
#include <chrono>

namespace cohort {

// A longer limit counts as this one. So std::chrono::milliseconds::max() means no limit, and does not overflow.
inline constexpr std::chrono::milliseconds kLongestLimit = std::chrono::hours(24 * 365 * 100);

// Returns the time that is `limit`, but at most kLongestLimit, after `start`.
inline std::chrono::steady_clock::time_point DeadlineAfter(
    std::chrono::milliseconds limit, std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now()) {
  return start + std::min(limit, kLongestLimit);
}

}  // namespace cohort
