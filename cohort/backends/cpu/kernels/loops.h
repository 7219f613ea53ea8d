// How CPU kernels go over elements. The function for a dtype is picked once, when the kernel is made. bfloat16 is
// computed in float32. A loop is split over the OpenMP team only if it is long. Internal to backends/cpu/kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cohort/core/bfloat16.h"
#include "cohort/core/dtype.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cpu {

// What elements of type T are computed in.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, bfloat16>, float, T>;

// fn(T()) for the dtype's T: float32, float64 or bfloat16. Throws UnimplementedError that names `op`.
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

// The same for these and int32, int64.
template <typename Fn>
auto ForNumbers(DType dtype, const std::string& op, const Fn& fn) -> decltype(fn(float())) {
  switch (dtype) {
    case DType::kInt32: return fn(int32_t());
    case DType::kInt64: return fn(int64_t());
    default: return ForFloating(dtype, op, fn);
  }
}

// The same for these and uint8: every dtype that is a number.
template <typename Fn>
auto ForAllNumbers(DType dtype, const std::string& op, const Fn& fn) -> decltype(fn(float())) {
  if (dtype == DType::kUint8) return fn(uint8_t());
  return ForNumbers(dtype, op, fn);
}

// fn(T()) for a T of the size of one element, for kernels that only move elements: uint8_t, uint16_t, uint32_t,
// uint64_t, or std::string for strings.
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

inline constexpr int64_t kElementsWorthATeam = 32 * 1024;

// body(begin, end) over [0, n), in one piece or one a thread. `cost` is about how many simple operations an element
// takes. The body must not throw where it runs on a team.
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
