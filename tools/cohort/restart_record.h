// RestartRecord: when a task has failed, and so how long the launcher pauses before it starts the task again.
#pragma once

#include <chrono>
#include <vector>

namespace cohort::tools {

// The failures of one task within the last `window`. The launcher owns one for each task. Only its thread may use it.
class RestartRecord {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  explicit RestartRecord(Seconds window) : window_(std::chrono::duration_cast<Clock::duration>(window)) {}

  // Records a failure. `counts` is false if it follows from the end of another task; it then uses up no restart.
  // Returns the pause before the next start: 0.1 s for the first failure within the window, and twice as long for each
  // further one, but at most 10 s.
  Seconds Add(Clock::time_point now, bool counts);
  // Returns how many failures that count are in the window.
  int Counted(Clock::time_point now) const;
  // Returns whether the latest failure that counts came at `time` or later.
  bool HasCountedSince(Clock::time_point time) const { return !counted_.empty() && counted_.back() >= time; }

 private:
  const Clock::duration window_;
  std::vector<Clock::time_point> failures_;  // in the order of time, as counted_ is
  std::vector<Clock::time_point> counted_;
};

}  // namespace cohort::tools
