// ChecksValues(): which kernels find bad values on the card, and report them through ErrorWords.
#pragma once

#include "cohort/graph/graph.h"

namespace cohort::cuda {

// Returns whether the node's kernel on a GPU may report a value of its inputs as bad: an index, a label, a divisor or
// an exponent. Updates of rows check their indices, too; they are not in this list. ErrorWords::Announce refuses any
// other node, so that the list is complete: CheckValuesFirst lets the updates of a step wait for these nodes.
bool ChecksValues(const Node& node);

}  // namespace cohort::cuda
