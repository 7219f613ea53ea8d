// CompilePlan(): makes the plan of a partition.
#pragma once

#include <memory>

#include "cohort/runtime/plan/plan.h"

namespace cohort {

// Makes a plan in this order: the device's backend improves the graph; values are placed in host or device memory;
// kernels are made; constants are stored; nodes are joined into chains if the backend can run them as one kernel.
// Throws what passes and kernels throw. Throws InvalidArgumentError if there is a cycle. `device` must live longer than
// the plan. `functions` compiles the functions that the partition calls; it must live longer than the plan. If it is
// null, the functions come from the library of `graph`.
std::unique_ptr<const Plan> CompilePlan(std::unique_ptr<Graph> graph, Device& device, FunctionLibrary* functions);

}  // namespace cohort
