// Deadlines from limits that users give.
#pragma once

#include <algorithm>
#include <chrono>

namespace cohort {

// A longer limit counts as a century.
inline constexpr std::chrono::milliseconds kLongestLimit = std::chrono::hours(24 * 365 * 100);

// Returns the time that is `limit` after `start`. A limit of more than a century counts as a century, so that
// std::chrono::milliseconds::max() means no limit and does not overflow.
inline std::chrono::steady_clock::time_point DeadlineAfter(
    std::chrono::milliseconds limit, std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now()) {
  return start + std::min(limit, kLongestLimit);
}

}  // namespace cohort
