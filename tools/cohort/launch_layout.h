// Says which tasks a local cluster has, and makes the environment of each task. The functions have no side effects.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cohort/core_division.h"

namespace cohort::tools {

struct JobCounts {
  int ps = 0;
  int workers = 0;
  int chief = 0;      // 0 or 1
  int evaluator = 0;  // 0 or 1; as in TensorFlow it is not part of the cluster and has no address in it
};

struct TaskId {
  std::string job;
  int index = 0;

  std::string Name() const;      // "worker/0"
  std::string FileName() const;  // "worker-0.log"
  bool IsPs() const { return job == "ps"; }
  bool InCluster() const { return job != "evaluator"; }
};

// Returns the tasks in the order in which they are started: ps, chief, worker, evaluator.
std::vector<TaskId> TasksOf(const JobCounts& counts);

// Returns the TF_CONFIG of `tasks[which]`: {"cluster":{"ps":["127.0.0.1:1"],...},"task":{"type":"ps","index":0}}.
// `addresses[i]` is the address of `tasks[i]`. It is not used for a task that is not part of the cluster.
std::string TFConfigText(const std::vector<TaskId>& tasks, const std::vector<std::string>& addresses, size_t which);

using Environment = std::map<std::string, std::string>;

// Returns the environment of this process.
Environment CurrentEnvironment();

// Sets OMP_NUM_THREADS for `task`. If tasks share cores it also sets OMP_WAIT_POLICY=passive and, for GCC's OpenMP,
// GOMP_SPINCOUNT=1000: a waiting thread then looks for work for some ten microseconds before it leaves the core to
// other threads. Variables that `current` has do not change, with one exception: a fixed number of threads
// (`threads_are_fixed`) replaces OMP_NUM_THREADS.
void SetThreads(const TaskId& task, const CoreDivision& division, bool threads_are_fixed, Environment* current);

// Returns 128 random bits as 32 hexadecimal digits. Throws UnavailableError if the system has no random bits.
std::string NewToken();
// Sets COHORT_TOKEN to `token` unless `current` has a COHORT_TOKEN or a COHORT_TOKEN_FILE.
void SetToken(const std::string& token, Environment* current);

// Sets COHORT_RUN_ID to `id` unless `current` has it. By it a chief that is started again knows that it belongs to the
// same run (cohort/train/session/training_marker.h).
void SetRunId(const std::string& id, Environment* current);

// Sets COHORT_STOP_GRACE to the number of seconds, rounded up, unless `current` has it
// (cohort/core/process/stop_signal.h).
void SetStopGrace(std::chrono::duration<double> grace, Environment* current);

// Sets COHORT_LINE_BUFFERED=1, unless `current` has the variable. With it, a task that writes to a pipe writes each
// line at once (cohort/core/process/line_buffering.h).
void SetLineBuffering(Environment* current);

// Sets `variable` to `seconds`. Without `seconds` the variable stays as it is.
void SetSeconds(const std::string& variable, const std::optional<double>& seconds, Environment* current);

// Returns "3.0 s".
std::string OneDecimal(std::chrono::duration<double> time);

// Sets COHORT_PROGRESS=bar, unless `current` has the variable. With it, a task that writes to a pipe draws progress
// bars.
void SetProgressBars(Environment* current);

}  // namespace cohort::tools
