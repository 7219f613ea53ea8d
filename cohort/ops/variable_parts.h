// What holds the values of variables (PartsOf), and look-ups in parts. Internal: optimizers, strategies, training steps
// and look-ups use it.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/ops/variables.h"

namespace cohort::ops {

// Returns the variables in order, and for each one that has parts() its parts instead of it.
std::vector<Variable> PartsOf(const std::vector<Variable>& variables);

// Which row of which part each index means. Row r of part p has the index first[p] + step * r.
struct PlacesInParts {
  Output part;  // int32
  Output row;
  std::vector<int64_t> first;
  int64_t step;
};
// Returns the rows at `places`: the shape of `indices`, followed by that of a row. The parts have rows of one shape.
Output GatherFrom(const std::vector<Variable>& parts, Output indices, const PlacesInParts& places,
                  const NodeName& name);
// Returns the rows `indices` of parts whose rows follow each other.
Output GatherInOrder(const std::vector<Variable>& parts, Output indices, const NodeName& name);

}  // namespace cohort::ops
