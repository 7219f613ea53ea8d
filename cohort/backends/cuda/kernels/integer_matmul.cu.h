// The launch of the kernel for products of matrices of integers, which no library of the vendor has.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

// Sizes and layout of c[m,n] = a'[m,k] b'[k,n], as in GemmSpec (libraries/blas.h).
struct IntegerProduct {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t batches = 1;
  int64_t step_a = 0;
  int64_t step_b = 0;
};

// The products of the batches lie one after another in c. Sums wrap around. Requires: m, n and batches are at least 1.
void LaunchIntegerMatMul(Driver& driver, StreamHandle stream, ElementType type, const IntegerProduct& product,
                         const void* a, const void* b, void* c);

}  // namespace cohort::cuda
