// What a test counts to see that nothing was left behind: "/proc/self/fd", "/proc/self/task", files of a folder.
#pragma once

#include <filesystem>

namespace cohort::testing {

inline int CountEntries(const char* folder) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

}  // namespace cohort::testing
