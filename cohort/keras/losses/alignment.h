// Makes the shapes of targets, predictions and weights fit together, as Keras does. Internal to keras/.
#pragma once

#include "cohort/graph/graph.h"

namespace cohort::keras {

// Two tensors whose shapes fit together.
struct Aligned {
  Output first;
  Output second;
};

// Makes the ranks equal if they differ by one and the longer shape ends in a dimension of 1. That dimension is removed.
// But if the other tensor is a vector, the vector gets a dimension of 1 instead. In all other cases, and if a rank is
// not known, returns both unchanged.
Aligned AlignRanks(Output first, Output second);

// Returns `weights` as float32, with dimensions of 1 added or removed at the end until they broadcast against `values`
// example by example. [batch] and [batch, 1] fit any values.
Output AlignWeights(const Output& values, Output weights);

// Returns a mask of predictions as weights of 0 and 1 that broadcast against `values`, the values of a loss or a
// metric. Throws InvalidArgumentError if the mask has a higher rank: the values are not those of steps.
Output MaskWeights(const Output& values, const Output& mask);

// Returns integer labels [batch, ...] for predictions [batch, ..., classes], as int32 or int64. A last dimension of 1
// is removed.
Output SparseLabels(Output y_true, const Output& y_pred);

// Returns `x` converted to `dtype`, or `x` itself if it has this dtype.
Output CastTo(Output x, DType dtype);

// Returns a / b, or 0 if b is 0. For float32 or float64.
Output DivideNoNan(Output a, Output b);

}  // namespace cohort::keras
