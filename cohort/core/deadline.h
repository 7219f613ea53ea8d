// Deadlines from limits that users give.
#pragma once

#include <algorithm>
#include <chrono>

namespace cohort {

// Returns the time that is `limit` from now. A limit of more than a century counts as a century, so that
// std::chrono::milliseconds::max() means no limit and does not overflow.
inline std::chrono::steady_clock::time_point DeadlineAfter(std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds kCentury = std::chrono::hours(24 * 365 * 100);
  return std::chrono::steady_clock::now() + std::min(limit, kCentury);
}

}  // namespace cohort
