// Launches of the kernels of inverse and hyperbolic functions, and of Atan2, Xdivy and Xlogy.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/binary_args.h"
#include "cohort/backends/cuda/kernels/unary.cu.h"

namespace cohort::cuda {

enum class SpecialFunction : uint8_t { kAsin, kAcos, kAtan, kSinh, kCosh, kAsinh, kAcosh, kAtanh };
enum class SpecialPair : uint8_t { kAtan2, kXdivy, kXlogy };

// The types are floating-point numbers.
void LaunchSpecial(Driver& driver, StreamHandle stream, SpecialFunction op, ElementType type, const UnaryArgs& args);
void LaunchSpecialPair(Driver& driver, StreamHandle stream, SpecialPair op, ElementType type, const BinaryArgs& args);

}  // namespace cohort::cuda
