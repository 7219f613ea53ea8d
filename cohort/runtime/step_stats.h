// RunMetadata: what a run that was traced (RunOptions::trace_level) tells about itself. Plain data with the names of
// TensorFlow's messages RunMetadata, StepStats, DeviceStepStats and NodeExecStats.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"

namespace cohort {

// One execution of one node. A node in the body of a loop has one for each iteration. Nodes that run as one kernel (a
// chain of elementwise nodes) have one together, with the name of the last of them. Constants have none, because they
// are computed when the signature is prepared.
struct COHORT_EXPORT NodeExecStats {
  std::string node_name;  // if it is in the body of a function: "CALLER/NODE"
  std::string op;
  std::vector<std::string> inputs;  // nodes of the same device whose values the node reads
  // If the node is a _Send or a _Recv: the value that travels ("dense/MatMul:0", its sender and its receiver); else "".
  std::string transfer;
  int64_t all_start_nanos = 0;    // since 1970, by the clock of the node's task
  int64_t all_end_rel_nanos = 0;  // the end of the node, after all_start_nanos. On a device with streams: the end of
                                  // the call that has enqueued the work
  int64_t output_bytes = 0;       // of all outputs together; a view counts as what it shows
  uint32_t thread_id = 0;         // the thread on which the node has ended: 0, 1, 2... for each task
};

struct COHORT_EXPORT DeviceStepStats {
  std::string device;                     // "/job:ps/replica:0/task:0/device:CPU:0"
  std::vector<NodeExecStats> node_stats;  // in the order of all_start_nanos
  int64_t num_dropped = 0;                // executions that are left out, because there were more than kMaxNodeStats
  static constexpr int64_t kMaxNodeStats = 200'000;
};

struct COHORT_EXPORT StepStats {
  std::vector<DeviceStepStats> dev_stats;  // sorted by device
};

struct COHORT_EXPORT RunMetadata {
  StepStats step_stats;
};

}  // namespace cohort
