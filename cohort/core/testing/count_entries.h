// CountEntries(): counts the entries of a folder, such as "/proc/self/fd" or "/proc/self/task". Tests use it to see
// that nothing was left behind.
#pragma once

#include <filesystem>

namespace cohort::testing {

inline int CountEntries(const char* folder) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

}  // namespace cohort::testing
