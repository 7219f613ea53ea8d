// SharedComputation: the work of one collective if the inputs of all members are in one memory. Internal to shared/.
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

// Returns the computation for `calls`, which has the call of each rank. Moves the inputs out of the calls. The result
// may use the memory of an input that nothing else holds. There are no other side effects.
SharedComputation MakeSharedComputation(std::vector<CollectiveCall>& calls, const ReductionTable& reductions);

}  // namespace cohort::collective
