// Ops that look at what a value is like, not at its elements.
#pragma once

#include "cohort/graph/graph.h"

namespace cohort {

// Whether the node reads the shape of its input alone, so that neither where the elements lie nor their order matters.
inline bool ReadsShapeAlone(const Node& node) {
  return node.op_name() == "Shape" || node.op_name() == "Size" || node.op_name() == "Rank";
}

}  // namespace cohort
