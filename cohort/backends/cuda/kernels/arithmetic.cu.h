// Launches of the kernels of two numbers, and of AddN.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/binary_args.h"

namespace cohort::cuda {

enum class ArithmeticOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,  // of integers: rounded towards zero
  kFloorDiv,
  kFloorMod,
  kMaximum,
  kMinimum,
  kSquaredDifference,
  kPow
};

// The types are all numbers.
void LaunchArithmetic(Driver& driver, StreamHandle stream, ArithmeticOp op, ElementType type, const BinaryArgs& args);

// out = the sum of up to kMostAddends operands, added in their order. `out` may be one of them.
inline constexpr int kMostAddends = 16;
struct AddNArgs {
  const void* operands[kMostAddends];
  int count;  // at least 1
  void* out;
  int64_t n;  // elements; at least 1
};
void LaunchAddN(Driver& driver, StreamHandle stream, ElementType type, const AddNArgs& args);

}  // namespace cohort::cuda
