// Repeats a step inside of one run of a graph. Internal to keras/.
#pragma once

#include <cstddef>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort::keras {

// The nodes of a step: the values that are fed, those that are fetched, and the nodes that have to run.
struct StepNodes {
  std::vector<Output> arguments;
  std::vector<Output> fetches;
  std::vector<Node*> targets;
};

// Adds copies of a step, so that one run of the result makes `steps` steps one after another: a node with a state (a
// read or an update of a variable, the next element of an iterator) runs when the step before has ended. The first
// `shared` arguments of `one` are those of all steps, but the step with index i gets argument 0 + i, which must be an
// integer if there is one. Each step has its own other arguments. They and the fetches are in the order of the steps.
// Requires: steps >= 1.
StepNodes Repeated(const StepNodes& one, int steps, size_t shared);

}  // namespace cohort::keras
