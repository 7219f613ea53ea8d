// RunningStep: what one task does for a step that has not ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cohort/runtime/wait_kind.h"

namespace cohort {

// A node of a step that a thread runs now, or whose kernel waits.
struct RunningOperation {
  std::string node;    // "gradients/dense/kernel"
  std::string op;      // "MatMul"
  std::string device;  // the full name of the device
  int thread = 0;  // the system's number of the thread that runs the node; 0: the kernel waits, and no thread runs it
  // The rest is about a kernel that waits.
  WaitKind wait = WaitKind::kWork;
  std::string what;  // "the value 'dense/MatMul:0'", or "" if there is no more to say than node and op
  std::string peer;  // the full name of the task that it waits for, or "" if that is not known

  bool waits() const { return thread == 0; }
};

// A step that has begun on a task and has not ended there.
struct RunningStep {
  using Clock = std::chrono::steady_clock;

  uint64_t session = 0;
  int64_t step = 0;    // its number in the session
  std::string client;  // the full name of the task whose master runs the step
  // Changes whenever a kernel of the step starts or ends on this task.
  uint64_t stamp = 0;
  // When LocalTask::RunningSteps first returned the step, and when it last returned the step with a new stamp. So both
  // are as exact as the calls are frequent.
  Clock::time_point since;
  Clock::time_point progress;
  // What the step does now. If it is empty, the step waits for the device's compute thread, or is about to go on.
  std::vector<RunningOperation> operations;
};

}  // namespace cohort
