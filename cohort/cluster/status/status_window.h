// StatusWindow: turns counters of a task into rates and shares of the last seconds.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "cohort/cluster/status/task_status.h"
#include "cohort/runtime/running_step.h"

namespace cohort {

// What the steps of a task do at one moment.
enum class StepUse : uint8_t {
  kNone,     // no step runs
  kCompute,  // at least one kernel runs, or a step is about to go on
  kData,     // else: a step waits for an iterator
  kWait,     // else: all steps wait for other tasks, or in queues
};
inline constexpr size_t kStepUses = 4;

// Returns what the steps do together.
StepUse UseOf(const std::vector<RunningStep>& steps);

// The counters of a task at one moment. All but the global step only grow.
struct StatusSample {
  std::chrono::steady_clock::time_point time;
  int64_t steps = 0;
  int64_t sent_bytes = 0;
  int64_t received_bytes = 0;
  std::optional<int64_t> global_step;
  std::array<int64_t, kStepUses> looks{};  // how often each StepUse was seen
};

// The samples of the last kStatusWindow. Not thread-safe.
class StatusWindow {
 public:
  // Adds the newest sample and drops samples that are older than kStatusWindow, except the latest one of these.
  void Add(const StatusSample& sample);
  // Sets the counters of `status` from the sample `now`, which is not in the window, and its rates and shares from the
  // time since the oldest sample. If that is less than half a second, they are 0.
  void Fill(const StatusSample& now, TaskStatus* status) const;
  // Returns whether a step has ended since the sample before the newest one, which is at least a second old, or since
  // the start if there is no such sample.
  bool SteppedLately(const StatusSample& now) const;

 private:
  std::deque<StatusSample> samples_;
};

}  // namespace cohort
