// Launches of the kernels that compare two elements, or combine two truth values. The result is a truth value.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/binary_args.h"

namespace cohort::cuda {

enum class ComparisonOp : uint8_t {
  // of numbers and truth values
  kEqual,
  kNotEqual,
  // of numbers
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  // of truth values
  kLogicalAnd,
  kLogicalOr
};

void LaunchComparison(Driver& driver, StreamHandle stream, ComparisonOp op, ElementType type, const BinaryArgs& args);

}  // namespace cohort::cuda
