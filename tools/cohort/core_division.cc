#include "tools/cohort/core_division.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace cohort::tools {
namespace {

int CoresOfAffinity() {
  constexpr int kMaxCores = 1 << 16;
  for (int size = 1024; size <= kMaxCores; size *= 2) {  // the kernel refuses a set smaller than its own
    const size_t bytes = CPU_ALLOC_SIZE(size);
    std::vector<unsigned long> set(bytes / sizeof(unsigned long));
    auto* cpus = reinterpret_cast<cpu_set_t*>(set.data());
    if (sched_getaffinity(0, bytes, cpus) == 0) return CPU_COUNT_S(bytes, cpus);
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

CoreDivision DivideCores(int cores, int compute_tasks, int ps_tasks, std::optional<int> fixed_threads) {
  CoreDivision division;
  if (fixed_threads) {
    division.threads_per_task = division.threads_per_ps = *fixed_threads;
  } else {
    division.threads_per_task = std::max(1, cores / std::max(1, compute_tasks));
  }
  const int64_t threads = static_cast<int64_t>(compute_tasks) * division.threads_per_task +
                          static_cast<int64_t>(ps_tasks) * division.threads_per_ps;
  division.shared_cores = threads > cores;
  return division;
}

std::optional<int> CoresOfQuota(std::string_view cpu_max) {
  const char* const end = cpu_max.data() + cpu_max.size();
  int64_t quota = 0, period = 0;
  const auto first = std::from_chars(cpu_max.data(), end, quota);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ' ') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, period);
  if (second.ec != std::errc() || quota <= 0 || period <= 0) return std::nullopt;
  return static_cast<int>(std::min<int64_t>((quota - 1) / period + 1, 1 << 20));
}

int AvailableCores() {
  int cores = CoresOfAffinity();
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string line;
  if (std::getline(file, line)) cores = std::min(cores, CoresOfQuota(line).value_or(cores));
  return std::max(1, cores);
}

}  // namespace cohort::tools
