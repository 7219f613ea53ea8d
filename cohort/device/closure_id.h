// ClosureId: says of which closure of a coordinator a step is an attempt. StepStart: what a task is told about a step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort {

class StepTrace;

// A closure of a coordinator. If a worker is lost, the coordinator runs the closure again, as another step, perhaps of
// another session.
struct COHORT_EXPORT ClosureId {
  uint64_t coordinator = 0;  // random at each start of a coordinator; 0: the step is not of a closure
  int64_t number = 0;        // 1, 2, 3... in the order in which the coordinator got its closures
  int64_t lowest = 0;        // every closure of a smaller number has ended
  bool valid() const { return coordinator != 0; }
  friend bool operator==(const ClosureId&, const ClosureId&) = default;
};

// The number of a step in its session, the closure of which it is an attempt, if it is one, the object that collects
// what its nodes did, if the step is traced, and whether the task repeats the step.
struct COHORT_EXPORT StepStart {
  StepStart(int64_t number, ClosureId closure = {}, std::shared_ptr<StepTrace> trace = nullptr)  // NOLINT: implicit
      : number(number), closure(closure), trace(std::move(trace)) {}
  int64_t number;
  ClosureId closure;
  std::shared_ptr<StepTrace> trace;  // null: the step is not traced
  // The task runs the step again each time it has ended, until it fails. All its runs have the one number. Requires:
  // the step is not traced, is of no closure, and has no arguments, no results and no edges between partitions.
  bool repeat = false;
  // Returns the args that the step after this one will probably have, or none. Is used only in this process and in mode
  // kInline, before the call that starts the step returns (StepRecordings::NextArgs). May be null.
  const std::function<std::vector<Tensor>()>* next_args = nullptr;
};

}  // namespace cohort
