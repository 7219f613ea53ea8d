// OutputShapes: the shapes of a node's outputs, known before its kernel has run.
#pragma once

#include <vector>

#include "cohort/device/kernel.h"

namespace cohort {

// Applies the shape rule of the op of `ctx` to the tensors that are there: actual shapes and dtypes of the inputs, the
// values of those that lie in host memory, and the variables behind handles. A kernel on a stream allocates its outputs
// by it when it enqueues its work. A dimension that depends on data in device memory is unknown in the result; such ops
// have the trait data_dependent_shape. Throws what the rule throws, with the node, if the inputs do not fit the op.
std::vector<Shape> OutputShapes(const KernelContext& ctx);

}  // namespace cohort
