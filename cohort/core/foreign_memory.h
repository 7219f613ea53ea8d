// A check of shapes that come from outside of Cohort.
#pragma once

#include <cstddef>

#include "cohort/core/dtype.h"
#include "cohort/core/shape.h"

namespace cohort {

// Returns the number of bytes that the elements of a tensor in foreign memory have. Throws InvalidArgumentError for
// elements that are no numbers or bools, if a dimension is unknown, and if the dimensions other than 0 make more than
// 2^60 bytes. Strides of such a shape do not overflow.
size_t BytesInForeignMemory(DType dtype, const Shape& shape);

}  // namespace cohort
