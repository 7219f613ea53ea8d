// How the tasks of a local cluster share the machine's cores.
#pragma once

#include <optional>
#include <string_view>

namespace cohort::tools {

struct CoreDivision {
  int threads_per_task = 1;  // of chief, workers and evaluator; at least 1
  int threads_per_ps = 1;
  // Threads outnumber cores: idle OpenMP threads have to sleep instead of spinning on cores that others need.
  bool shared_cores = false;
};

// Tasks that compute divide the cores evenly; a ps, which is idle while they compute, gets one thread.
// `fixed_threads` (at least 1), where given, is what every task gets instead. All counts are at least 0.
CoreDivision DivideCores(int cores, int compute_tasks, int ps_tasks, std::optional<int> fixed_threads);

// Cores that this process may use: its CPU affinity, limited by the control group's quota. At least 1.
int AvailableCores();

// Whole cores (rounded up) that the text of a cgroup v2 "cpu.max" file allows, "200000 100000" being 2;
// nullopt for "max" and for text of another form.
std::optional<int> CoresOfQuota(std::string_view cpu_max);

}  // namespace cohort::tools
