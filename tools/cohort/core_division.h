// Divides the cores of this machine among the tasks of a local cluster.
#pragma once

#include <optional>
#include <string_view>

namespace cohort::tools {

struct CoreDivision {
  int threads_per_task = 1;  // of chief, workers and evaluator; at least 1
  int threads_per_ps = 1;
  // True if there are more threads than cores. Idle OpenMP threads then have to sleep, and must not spin on cores that
  // other threads need.
  bool shared_cores = false;
};

// Divides the cores evenly among the tasks that compute. Each ps gets one thread, because it is idle while they
// compute. If `fixed_threads` is given, every task gets that number instead. Requires: all counts are at least 0, and
// `fixed_threads` is at least 1.
CoreDivision DivideCores(int cores, int compute_tasks, int ps_tasks, std::optional<int> fixed_threads);

// Returns the number of cores that this process may use: those of its CPU affinity, limited by the quota of its control
// group. The result is at least 1.
int AvailableCores();

// Returns the number of cores, rounded up, that the text of a cgroup v2 file "cpu.max" allows. "200000 100000" gives 2.
// Returns nullopt for "max" and for text of another form.
std::optional<int> CoresOfQuota(std::string_view cpu_max);

}  // namespace cohort::tools
