// LaunchedProgram: a program that a test runs in a process of its own. It collects the output and waits for the end. No
// wait is without a limit.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/mutex.h"

namespace cohort::testing {

// The time in seconds after which a test counts as hanging. It is long, because machines may be busy.
constexpr int kPatience = 120;

class LaunchedProgram {
 public:
  // Runs `command` (a path and arguments) with stdin from /dev/null, and stdout and stderr in pipes. `in_child` runs
  // between fork and exec.
  explicit LaunchedProgram(const std::vector<std::string>& command, const std::function<void()>& in_child = nullptr);
  // Kills the program if it still runs.
  ~LaunchedProgram();
  LaunchedProgram(const LaunchedProgram&) = delete;
  LaunchedProgram& operator=(const LaunchedProgram&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal);
  // Waits for the end of the program and of its output. Returns the exit code, 128 + signal, or -1 if the program does
  // not end in time.
  int Wait();
  // Returns the output so far. After Wait it is all output.
  std::string out();
  std::string err();
  // Waits until stdout and stderr together contain `text` `times` times. Returns false if they do not in time.
  bool WaitForText(const std::string& text, int times = 1);

 private:
  void Read(int fd, std::string* text);

  pid_t pid_ = -1;
  bool ended_ = false;
  int code_ = -1;
  std::thread readers_[2];
  Mutex mu_;
  CondVar more_;
  std::string out_ COHORT_GUARDED_BY(mu_);
  std::string err_ COHORT_GUARDED_BY(mu_);
  int open_ COHORT_GUARDED_BY(mu_) = 2;  // streams that have not ended
};

// Watches a process that need not be a child of this one. While it exists, no other process gets the same number.
class WatchedProcess {
 public:
  explicit WatchedProcess(pid_t pid);
  ~WatchedProcess();
  WatchedProcess(WatchedProcess&& other) noexcept;
  // Returns false if the process still runs after kPatience.
  bool WaitForEnd() const;
  bool running() const;

 private:
  int fd_;  // -1: the process had ended already
};

// Returns the numbers that follow `label` in `text`: {12, 15} for "pid " in "pid 12 and pid 15".
std::vector<pid_t> NumbersAfter(const std::string& text, const std::string& label);

}  // namespace cohort::testing
