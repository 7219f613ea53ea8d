// TaskState: what a task does at this moment, as text for people and as data for `cohort status`.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "cohort/runtime/running_step.h"

namespace cohort {

class ClusterNode;

// A collective that has begun on a task and has not ended there. Services tell it (NodeService::AppendWaits).
struct CollectiveWait {
  std::string name;  // the name of the node that began it: "gradients/dense/kernel"
  std::string what;  // "'gradients/dense/kernel' (instance 3, round 7), all-reduce SUM of float32[4] by RING"
  std::string wait;  // "waits for rank 2 (...) at step 3 of 12"
  std::vector<std::string> peers;  // the full names of the tasks that it waits for
};

// A session that has state on a task.
struct SessionState {
  uint64_t session = 0;
  std::string client;  // the full name of the task whose master has the session; "" if it is not known
  int64_t graphs = 0;  // the signatures that are prepared here
  bool ended = false;  // the lease has ended, and what the session has here is being freed
  // If the client is not connected: the time until the lease ends. Less than 0: the client is connected, or the session
  // is one of this process and has no lease.
  std::chrono::milliseconds expires_in{-1};
};

struct MemoryState {
  int64_t resident_bytes = 0;       // RSS
  int64_t peak_resident_bytes = 0;  // the largest RSS so far
  int64_t allocated_bytes = 0;      // tensors in host memory that are in use
};

struct TaskState {
  std::string task;  // the full name
  uint64_t incarnation = 0;
  int process = 0;                 // the system's number of the process
  std::vector<RunningStep> steps;  // of collectives, `peer` is filled in
  std::vector<CollectiveWait> collectives;
  std::vector<SessionState> sessions;
  MemoryState memory;
};

// Returns the state of the node's task. Waits for no kernel, so it takes microseconds. A client, which runs no task,
// has no steps and no sessions. Thread-safe.
TaskState CollectTaskState(ClusterNode& node);

// Returns the steps of CollectTaskState alone.
std::vector<RunningStep> CollectRunningSteps(ClusterNode& node);

// Returns the collectives that a program runs without a session, as operations of a step without a number.
RunningStep CollectivesWithoutStep(ClusterNode& node, const std::vector<RunningStep>& steps);

// Returns the state as text.
std::string DescribeWithoutStacks(const TaskState& state);

// Returns the state of the node's task as text, with the stacks of all threads of the process (core/process/stacks.h).
// Takes at most about two seconds, if threads do not answer. Thread-safe.
std::string DescribeTask(ClusterNode& node);

}  // namespace cohort
