// Launches of the kernels of one operand.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

enum class UnaryOp : uint8_t {
  // of all numbers
  kNeg,
  kAbs,
  kSign,
  kSquare,
  kRound,
  // of floating-point numbers; of integers too, whose zeros a check reports
  kReciprocal,
  // of floating-point numbers
  kSqrt,
  kRsqrt,
  kFloor,
  kCeil,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kSin,
  kCos,
  kTan,
  kErf,
  // of floating-point numbers, with truth values as result
  kIsNan,
  kIsInf,
  kIsFinite,
  // of truth values
  kLogicalNot
};

struct UnaryArgs {
  const void* x;
  void* y;    // may be x, if the elements have one size
  int64_t n;  // at least 1
};

void LaunchUnary(Driver& driver, StreamHandle stream, UnaryOp op, ElementType type, const UnaryArgs& args);

// Converts elements. Floating-point numbers lose their fraction if `to` is an integer type; numbers that do not fit
// become the lowest int32 or int64, as on x86. For bool, the result is whether the element is not 0.
void LaunchCast(Driver& driver, StreamHandle stream, ElementType from, ElementType to, const UnaryArgs& args);

}  // namespace cohort::cuda
