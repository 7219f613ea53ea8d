// OutputShapes: returns the shapes of a node's outputs before its kernel has run.
#pragma once

#include <vector>

#include "cohort/device/kernel.h"

namespace cohort {

// Applies the shape rule of the node's op to what is known: the shapes and dtypes of the inputs, the values of inputs
// in host memory, and the variables of handles. A kernel on a stream allocates its outputs with these shapes when it
// enqueues its work. A dimension that depends on data in device memory is unknown; such ops have the trait
// data_dependent_shape. Throws what the shape rule throws if the inputs do not fit the op. Throws InternalError if the
// rule returns a wrong number of shapes.
std::vector<Shape> OutputShapes(const KernelContext& ctx);

}  // namespace cohort
