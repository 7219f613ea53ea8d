// GuideTest: types the commands of a guide, each in the network of its host and in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/testing/temp_folder.h"
#include "tests/cluster/host_network.h"
#include "tests/cluster/launched_program.h"

namespace cohort::testing {

using Words = std::vector<std::string>;

// Replaces `from`, which has to occur, by `to`.
inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// Returns the lines, among them those that a progress bar has drawn over each other.
inline Words Lines(std::string text) {
  std::replace(text.begin(), text.end(), '\r', '\n');
  Words lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

inline Words LinesWith(const std::string& text, const std::string& part) {
  Words found;
  for (const std::string& line : Lines(text)) {
    if (line.find(part) != std::string::npos) found.push_back(line);
  }
  return found;
}

// Returns the definition of a function `python` for a shell, as `readme` has it, with the path `program` instead of
// `path`. With `exec`, signals reach the program and not the shell.
inline std::string PythonIs(const std::string& readme, const std::string& path, const std::string& program) {
  return Replaced(readme, path, "exec " + program) + "\n";
}

// A guide's hosts have the addresses of the guide. The programs that a test starts end with the test.
class GuideTest : public ::testing::Test {
 protected:
  explicit GuideTest(Words addresses) : addresses_(std::move(addresses)) {}

  // Root's networks have to work: an exception fails the test.
  void SetUp() override {
    if (const std::string why = WhyNoNetworks(); !why.empty()) GTEST_SKIP() << why;
    network_.emplace(addresses_);
  }
  // Types `command` on the host. The terminal has no settings of the machine that runs the test, its home and working
  // folder are of this host alone, and its environment has `variables` in addition.
  LaunchedProgram& Type(const std::string& host, const std::string& command, const Words& variables) {
    const std::string folder = File(host);
    std::filesystem::create_directories(folder);
    Words words{"/usr/bin/env", "HOME=" + folder, "LC_ALL=C"};
    for (const char* name : {"TF_CONFIG", "COHORT_TOKEN", "COHORT_TOKEN_FILE", "XDG_CONFIG_HOME", "COHORT_DATA_DIR",
                             "COHORT_ALLOW_INSECURE"}) {
      words.insert(words.begin() + 1, {"-u", name});
    }
    words.insert(words.end(), variables.begin(), variables.end());
    words.insert(words.end(), {"/bin/bash", "-c", command});
    const auto in_child = [&, this] {
      network_->host(host).Enter();
      if (chdir(folder.c_str()) != 0) _exit(126);
    };
    return *programs_.emplace_back(std::make_unique<LaunchedProgram>(words, in_child));
  }
  // Ends what the guide's reader ends with Ctrl-C, the last program first. A program that trains ends in good order,
  // and one that only serves does not.
  void Interrupt() {
    for (auto it = programs_.rbegin(); it != programs_.rend(); ++it) {
      (*it)->Signal(SIGINT);
      EXPECT_THAT((*it)->Wait(), ::testing::AnyOf(0, 128 + SIGINT)) << (*it)->err();
    }
  }
  std::string Output() {
    std::string text;
    for (const auto& program : programs_) text += program->out() + program->err() + "----\n";
    return text;
  }

  std::string File(const std::string& name) const { return folder_ / name; }

  const Words insecure_{"COHORT_ALLOW_INSECURE=1", "COHORT_TOKEN=the-token-of-the-guides"};

 private:
  const TempFolder folder_;
  const Words addresses_;
  std::optional<HostNetwork> network_;
  std::vector<std::unique_ptr<LaunchedProgram>> programs_;  // they end before their network
};

}  // namespace cohort::testing
