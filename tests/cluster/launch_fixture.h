// The fixture of the tests of `cohort launch`: it makes command lines, and a folder for each test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/testing/temp_folder.h"
#include "tests/cluster/example_output.h"
#include "tests/cluster/launched_program.h"

namespace cohort::testing {

// A condition of the shell that is true in task "worker", 1.
inline constexpr char kIsTask[] =
    "is() { case $TF_CONFIG in *'\"task\":{\"type\":\"'$1'\",\"index\":'$2'}'*) true;; *) false;; esac; }; ";

inline std::vector<std::string> Launch(std::vector<std::string> flags, const std::vector<std::string>& program) {
  flags.insert(flags.begin(), {COHORT_PROGRAM, "launch"});
  flags.emplace_back("--");
  flags.insert(flags.end(), program.begin(), program.end());
  return flags;
}

inline std::vector<std::string> Shell(std::vector<std::string> flags, const std::string& script) {
  return Launch(std::move(flags), {"/bin/sh", "-c", kIsTask + script});
}

inline std::vector<std::string> SortedLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

inline std::vector<WatchedProcess> Watch(const std::vector<pid_t>& pids) { return {pids.begin(), pids.end()}; }

class LaunchTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name) const { return folder_ / name; }

  const TempFolder folder_;
};

}  // namespace cohort::testing
