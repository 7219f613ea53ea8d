// ElementType: the types of elements that kernels of the CUDA backend have. Functions that launch kernels get it as a
// plain value, and choose the kernel of the C++ type by it.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/backends/cuda/dialect/bfloat16.h"
#include "cohort/core/error.h"

namespace cohort::cuda {

enum class ElementType : uint8_t { kFloat32, kFloat64, kBfloat16, kInt32, kInt64, kUint8, kBool };

// Call fn(T()) for the type's T. Throw InternalError that names `what` for a type that they do not have: the code that
// makes a kernel object refuses dtypes that the op does not have, so this is a mistake of the backend.
template <typename Fn>
void ForFloating(ElementType type, const char* what, const Fn& fn) {
  switch (type) {
    case ElementType::kFloat32: return fn(float());
    case ElementType::kFloat64: return fn(double());
    case ElementType::kBfloat16: return fn(BFloat16());
    default: break;
  }
  throw InternalError("[backends/cuda] expected float32, float64 or bfloat16 for " + std::string(what) +
                      "; got element type " + std::to_string(static_cast<int>(type)));
}
template <typename Fn>
void ForIntegers(ElementType type, const char* what, const Fn& fn) {
  switch (type) {
    case ElementType::kInt32: return fn(int32_t());
    case ElementType::kInt64: return fn(int64_t());
    case ElementType::kUint8: return fn(uint8_t());
    default: break;
  }
  throw InternalError("[backends/cuda] expected int32, int64 or uint8 for " + std::string(what) +
                      "; got element type " + std::to_string(static_cast<int>(type)));
}
// The types of indices: int32 and int64.
template <typename Fn>
void ForIndices(ElementType type, const char* what, const Fn& fn) {
  if (type == ElementType::kInt64) return fn(int64_t());
  if (type == ElementType::kInt32) return fn(int32_t());
  throw InternalError("[backends/cuda] expected int32 or int64 indices for " + std::string(what));
}
// All types but bool.
template <typename Fn>
void ForNumbers(ElementType type, const char* what, const Fn& fn) {
  switch (type) {
    case ElementType::kInt32: return fn(int32_t());
    case ElementType::kInt64: return fn(int64_t());
    case ElementType::kUint8: return fn(uint8_t());
    default: return ForFloating(type, what, fn);
  }
}
// Calls fn(T()) for an unsigned T with as many bytes as an element has, for kernels that only move elements.
template <typename Fn>
void ForSizes(size_t bytes, const char* what, const Fn& fn) {
  switch (bytes) {
    case 1: return fn(uint8_t());
    case 2: return fn(uint16_t());
    case 4: return fn(uint32_t());
    case 8: return fn(uint64_t());
    default: break;
  }
  throw InternalError("[backends/cuda] expected elements of 1, 2, 4 or 8 bytes for " + std::string(what) + "; got " +
                      std::to_string(bytes) + " bytes");
}

}  // namespace cohort::cuda
