// How the fakes of NCCL compute. For tests only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cohort/backends/cuda/libraries/nccl.h"

namespace cohort::cuda {

inline size_t SizeOf(NcclType type) {
  switch (type) {
    case NcclType::kFloat64:
    case NcclType::kInt64: return 8;
    case NcclType::kFloat32:
    case NcclType::kInt32: return 4;
    case NcclType::kUint8: return 1;
  }
  return 1;
}

template <typename T>
T Joined(NcclOp op, T a, T b) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;  // integers wrap around
  switch (op) {
    case NcclOp::kSum: return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
    case NcclOp::kProduct: return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    case NcclOp::kMin: return b < a ? b : a;
    case NcclOp::kMax: return b > a ? b : a;
  }
  return a;
}

template <typename T>
void JoinElements(NcclOp op, void* sums, const void* next, size_t count) {
  auto* to = static_cast<T*>(sums);
  const auto* from = static_cast<const T*>(next);
  for (size_t i = 0; i < count; ++i) to[i] = Joined<T>(op, to[i], from[i]);
}

// Joins `count` elements of `next` to `sums`.
inline void JoinInto(NcclOp op, NcclType type, void* sums, const void* next, size_t count) {
  switch (type) {
    case NcclType::kFloat32: return JoinElements<float>(op, sums, next, count);
    case NcclType::kFloat64: return JoinElements<double>(op, sums, next, count);
    case NcclType::kInt32: return JoinElements<int32_t>(op, sums, next, count);
    case NcclType::kInt64: return JoinElements<int64_t>(op, sums, next, count);
    case NcclType::kUint8: return JoinElements<uint8_t>(op, sums, next, count);
  }
}

}  // namespace cohort::cuda
