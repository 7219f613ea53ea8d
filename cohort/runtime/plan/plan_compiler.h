// CompilePlan: makes a plan of a partition.
#pragma once

#include <memory>

#include "cohort/runtime/plan/plan.h"

namespace cohort {

// Lets the device's backend improve the partition, gives the values their memory, makes the kernels, keeps the
// constants, and joins nodes into chains if the backend can run them as one. Throws what passes and kernels throw, with
// node and device; InvalidArgumentError for a cycle. `device` must outlive the plan. `functions` compiles the functions
// that the partition calls and must outlive the plan; if it is null they come from the library of `graph`.
std::unique_ptr<const Plan> CompilePlan(std::unique_ptr<Graph> graph, Device& device, FunctionLibrary* functions);

}  // namespace cohort
