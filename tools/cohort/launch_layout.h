// Which tasks a local cluster has and what each one finds in its environment. Pure functions.
#pragma once

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
  int evaluator = 0;  // 0 or 1; stands beside the cluster, as in TensorFlow: has no address in it
};

struct TaskId {
  std::string job;
  int index = 0;

  std::string Name() const;      // "worker/0"
  std::string FileName() const;  // "worker-0.log"
  bool IsPs() const { return job == "ps"; }
  bool InCluster() const { return job != "evaluator"; }
};

// In the order in which they are started: ps, chief, worker, evaluator.
std::vector<TaskId> TasksOf(const JobCounts& counts);

// TF_CONFIG of `tasks[which]`: {"cluster":{"ps":["127.0.0.1:1"],...},"task":{"type":"ps","index":0}}.
// `addresses[i]` is that of `tasks[i]`; unused for tasks outside the cluster.
std::string TFConfigText(const std::vector<TaskId>& tasks, const std::vector<std::string>& addresses, size_t which);

using Environment = std::map<std::string, std::string>;

// The environment of this process.
Environment CurrentEnvironment();

// Sets OMP_NUM_THREADS for `task`. If tasks share cores it also sets OMP_WAIT_POLICY=passive and, for GCC's OpenMP,
// GOMP_SPINCOUNT=1000: threads that wait then look for work for some ten microseconds before they leave the core to
// others. What `current` sets stays, except that a fixed number of threads (`threads_are_fixed`) wins over
// OMP_NUM_THREADS.
void SetThreads(const TaskId& task, const CoreDivision& division, bool threads_are_fixed, Environment* current);

// 128 random bits as 32 hexadecimal digits. Throws UnavailableError where the system gives none.
std::string NewToken();
// Sets COHORT_TOKEN to `token` unless `current` has a COHORT_TOKEN or a COHORT_TOKEN_FILE.
void SetToken(const std::string& token, Environment* current);

// Sets COHORT_LINE_BUFFERED=1, with which a task's lines arrive as it prints them though it writes to a pipe
// (cohort/core/line_buffering.h); what `current` sets stays.
void SetLineBuffering(Environment* current);

// Sets `variable` to `seconds`. Without `seconds` the variable stays as it is.
void SetSeconds(const std::string& variable, const std::optional<double>& seconds, Environment* current);

// COHORT_PROGRESS=bar, with which a task draws progress bars though it writes to a pipe; what `current` sets stays.
void SetProgressBars(Environment* current);

}  // namespace cohort::tools
