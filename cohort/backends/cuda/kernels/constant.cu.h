// Launches of the kernels that make values from few.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// Fills n elements (at least 1) with the element at `value`, in device memory. An element has 1, 2, 4 or 8 bytes.
void LaunchFill(Driver& driver, StreamHandle stream, size_t element_bytes, const void* value, void* out, int64_t n);
// Fills n elements (at least 1) with the number 1, or with true.
void LaunchOnes(Driver& driver, StreamHandle stream, ElementType type, void* out, int64_t n);
// Writes start, start + delta, ...; n is at least 1. `start` and `delta` are numbers of the type, in host memory. The
// type is float32, float64, int32 or int64.
void LaunchRange(Driver& driver, StreamHandle stream, ElementType type, const void* start, const void* delta, void* out,
                 int64_t n);

}  // namespace cohort::cuda
