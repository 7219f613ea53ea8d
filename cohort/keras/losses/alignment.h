// How targets, predictions and weights of unlike shapes are brought together, as Keras does it. Internal to keras/.
#pragma once

#include "cohort/graph/graph.h"

namespace cohort::keras {

// Two tensors that belong together.
struct Aligned {
  Output first;
  Output second;
};

// Ranks that differ by one are made equal where the longer one ends in a dimension of 1: that is dropped, but beside a
// vector the vector gets a dimension of 1. Otherwise, and where a rank is not known, both stay as they are.
Aligned AlignRanks(Output first, Output second);

// `weights` as float32 with dimensions of 1 put after (or dropped from the end of) them until they broadcast against
// `values` example by example: [batch] and [batch, 1] fit any values.
Output AlignWeights(const Output& values, Output weights);

// Integer labels [batch, ...] for predictions [batch, ..., classes]: a last dimension of 1 is dropped; int32 or int64.
Output SparseLabels(Output y_true, const Output& y_pred);

// `x` unless it has that dtype.
Output CastTo(Output x, DType dtype);

// a / b, 0 where b is 0. float32 or float64.
Output DivideNoNan(Output a, Output b);

}  // namespace cohort::keras
