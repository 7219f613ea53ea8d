// Helpers for loops over elements. Most kernels choose the function for their dtype once, when they are made. bfloat16
// is computed in float32. ForBlocks uses several threads (the OpenMP team) only for a long loop. Internal to
// backends/cpu.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cohort/core/bfloat16.h"
#include "cohort/core/dtype.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cpu {

// The type in which elements of type T are computed.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, bfloat16>, float, T>;

// Returns fn(T()) for the dtype's T: float32, float64 or bfloat16. Throws UnimplementedError that names `op` for
// another dtype.
template <typename Fn>
auto ForFloating(DType dtype, const std::string& op, const Fn& fn) -> decltype(fn(float())) {
  switch (dtype) {
    case DType::kFloat32: return fn(float());
    case DType::kFloat64: return fn(double());
    case DType::kBfloat16: return fn(bfloat16());
    default: break;
  }
  throw UnimplementedError(StrCat("[backends/cpu] ", op, " is there for float32, float64 and bfloat16; got ", dtype));
}

// As ForFloating, but also for int32 and int64.
template <typename Fn>
auto ForNumbers(DType dtype, const std::string& op, const Fn& fn) -> decltype(fn(float())) {
  switch (dtype) {
    case DType::kInt32: return fn(int32_t());
    case DType::kInt64: return fn(int64_t());
    default: return ForFloating(dtype, op, fn);
  }
}

// As ForNumbers, but also for uint8, that is, for every numeric dtype.
template <typename Fn>
auto ForAllNumbers(DType dtype, const std::string& op, const Fn& fn) -> decltype(fn(float())) {
  if (dtype == DType::kUint8) return fn(uint8_t());
  return ForNumbers(dtype, op, fn);
}

// Returns fn(T()) for a type T that has the size of one element, for kernels that only move elements. T is uint8_t,
// uint16_t, uint32_t or uint64_t, or std::string for strings. Throws UnimplementedError that names `op` for other
// dtypes.
template <typename Fn>
auto ForElements(DType dtype, const std::string& op, const Fn& fn) -> decltype(fn(uint8_t())) {
  if (dtype == DType::kString) return fn(std::string());
  switch (DTypeSize(dtype)) {
    case 1: return fn(uint8_t());
    case 2: return fn(uint16_t());
    case 4: return fn(uint32_t());
    case 8: return fn(uint64_t());
    default: break;
  }
  throw UnimplementedError(StrCat("[backends/cpu] ", op, " cannot move elements of dtype ", dtype));
}

// ForBlocks uses several threads if n * cost is larger than this.
inline constexpr int64_t kElementsWorthATeam = 32 * 1024;

// Calls body(begin, end) for the range [0, n): once on this thread, or, if there is enough work (n * cost), once for
// each of `threads` threads, with a part of the range. `cost` is about how many simple operations an element takes.
// Requires: if `body` is called on several threads, it does not throw.
template <typename Body>
void ForBlocks(int64_t n, int threads, const Body& body, int64_t cost = 1) {
  if (threads <= 1 || n * cost <= kElementsWorthATeam) {
    body(int64_t{0}, n);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int i = 0; i < threads; ++i) body(n * i / threads, n * (i + 1) / threads);
}

}  // namespace cohort::cpu
