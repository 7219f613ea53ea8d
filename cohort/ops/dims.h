// Shapes and sizes as values of the graph: constants as far as they are known when the graph is built, else nodes that
// read them in the step. Internal to the op modules.
//
// `dtype` is int32 or int64. A known vector with a size that int32 cannot hold is int64 in any case.
#pragma once

#include "cohort/graph/graph.h"

namespace cohort::ops {

// Returns the shape of x, a vector.
Output ShapeValue(Output x, DType dtype = DType::kInt32);
// Returns the dimensions [begin, end) of x, a vector. Requires: x has at least `end` dimensions.
Output DimValues(Output x, int begin, int end, DType dtype = DType::kInt32);
// Returns the size of one dimension, a scalar. A negative `axis` counts from the end. For an axis that x does not have,
// throws InvalidArgumentError or, if the rank is not known, fails the step with it. Throws it also for a known size
// that `dtype` cannot hold.
Output DimValue(Output x, int axis, DType dtype = DType::kInt32);

}  // namespace cohort::ops
