// SharedComputation: what has to be computed for one collective when the inputs of all members are in one memory.
// Internal to shared/.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cohort/collective/call.h"
#include "cohort/device/reduction.h"

namespace cohort::collective {

// Work in parts that do not depend on each other: any thread may run any part, in any order.
struct SharedComputation {
  std::vector<Tensor> results;  // by rank; complete when all parts have run
  int64_t parts = 0;
  std::function<void(int64_t part)> run;  // holds the inputs
};

// Takes the inputs out of `calls`, which has the call of each rank. A pure function but for that. May use the memory of
// an input that nothing else holds for the result.
SharedComputation MakeSharedComputation(std::vector<CollectiveCall>& calls, const ReductionTable& reductions);

}  // namespace cohort::collective
