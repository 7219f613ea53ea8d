// StepTrace: collects what the nodes of a traced step did. RunTrace: the same for one run of one plan.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/device/step.h"
#include "cohort/runtime/plan/plan.h"
#include "cohort/runtime/step_stats.h"

namespace cohort {

// Collects the statistics of one step. The master of the step has one for all tasks. A task that runs a part for a
// master in another process has one of its own, whose statistics it sends with the results of the part. Shared by
// shared_ptr. Thread-safe.
class StepTrace {
 public:
  // Adds the statistics of a run, or of another task.
  void Add(DeviceStepStats stats) COHORT_EXCLUDES(mu_);
  void Add(StepStats stats) COHORT_EXCLUDES(mu_);
  // Returns 0, 1, 2... for the threads in the order in which they were asked about.
  uint32_t NumberOf(std::thread::id thread) COHORT_EXCLUDES(mu_);
  // Returns all that was added, and keeps nothing.
  StepStats Take() COHORT_EXCLUDES(mu_);

 private:
  Mutex mu_;
  std::map<std::string, DeviceStepStats> devices_ COHORT_GUARDED_BY(mu_);
  std::map<std::thread::id, uint32_t> threads_ COHORT_GUARDED_BY(mu_);
};

// The times of one run of a plan. The StepRun owns it while its step is traced. Several threads may call its functions
// at the same time for different nodes; GiveTo is called when all of them have ended.
class RunTrace {
 public:
  explicit RunTrace(const Plan& plan) : plan_(plan), entries_(plan.nodes.size()) {}

  void Start(const PlanNode& node);
  // The node has succeeded. `outputs` are its results.
  void End(const PlanNode& node, std::span<const Tensor> outputs);
  // Adds the nodes that have ended. `caller` is the call of the function whose body ran; null if there is none.
  void GiveTo(StepTrace& trace, const CallFrame* caller) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Clock::time_point start;
    Clock::time_point end;  // time_point(): the node has not ended
    int64_t bytes = 0;
    std::thread::id thread;
  };
  Entry& EntryOf(const PlanNode& node) { return entries_[static_cast<size_t>(&node - plan_.nodes.data())]; }
  NodeExecStats StatsOf(const PlanNode& node, const Entry& entry) const;

  const Plan& plan_;
  std::vector<Entry> entries_;  // by node
};

}  // namespace cohort
