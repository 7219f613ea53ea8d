// A program that a test runs beside itself: its output is collected, its end is waited for, nothing waits for
// ever.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/mutex.h"

namespace cohort::testing {

// How long anything in these tests may take before it counts as hanging. Seconds; generous, for loaded
// machines.
constexpr int kPatience = 120;

class LaunchedProgram {
 public:
  // Runs `command` (a path and arguments) with stdin from /dev/null, stdout and stderr in pipes. `in_child`
  // runs between fork and exec.
  explicit LaunchedProgram(const std::vector<std::string>& command, const std::function<void()>& in_child = nullptr);
  // Kills it if it still runs.
  ~LaunchedProgram();
  LaunchedProgram(const LaunchedProgram&) = delete;
  LaunchedProgram& operator=(const LaunchedProgram&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal);
  // Waits for the end and for the end of the output. The exit code, 128 + signal, or -1 if it does not end in
  // time.
  int Wait();
  // What it has printed so far; after Wait everything.
  std::string out();
  std::string err();
  // Waits until stdout and stderr together contain `text` `times` times. False if that does not come in time.
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

// A process that need not be a child of this one, held so that its number cannot go to another meanwhile.
class WatchedProcess {
 public:
  explicit WatchedProcess(pid_t pid);
  ~WatchedProcess();
  WatchedProcess(WatchedProcess&& other) noexcept;
  // False if it still runs after the time that tests are patient for.
  bool WaitForEnd() const;
  bool running() const;

 private:
  int fd_;  // -1: had ended already
};

// The numbers that follow `label` in `text`: {12, 15} for "pid " in "pid 12 and pid 15".
std::vector<pid_t> NumbersAfter(const std::string& text, const std::string& label);

}  // namespace cohort::testing
