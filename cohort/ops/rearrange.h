// Functions that move or leave out elements. They are composites: each adds several nodes, which have a gradient and
// run on every device.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// Returns the tensor with its elements moved by shifts[i] places along axes[i], towards higher positions if the shift
// is positive. What leaves at one end comes in at the other. Axes may be negative, and may repeat: then their shifts
// add up. `input` has any dtype and a known rank. Throws InvalidArgumentError for lists of different length, for an
// axis that is out of range, and for an unknown rank. As tf.roll.
COHORT_EXPORT Output Roll(Output input, const std::vector<int64_t>& shifts, const std::vector<int64_t>& axes,
                          const NodeName& name = "");

// Returns the matrices [..., m, n] with 0 outside of a band around the diagonal: element (i, j) stays if i - j is at
// most num_lower and j - i at most num_upper. A negative number keeps that whole triangle. `input` are numbers of a
// known rank. Throws InvalidArgumentError if it has fewer than two dimensions, or an unknown rank. As
// tf.linalg.band_part.
COHORT_EXPORT Output MatrixBandPart(Output input, int64_t num_lower, int64_t num_upper, const NodeName& name = "");

}  // namespace cohort::ops
