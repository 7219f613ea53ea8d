// What kernels need that move elements without a look at them: the largest piece that one instruction can move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/dialect/pack.h"
#include "cohort/backends/cuda/kernels/divider.h"

namespace cohort::cuda {

// Sixteen bytes, the most that a thread moves at once.
using Move16 = Pack<uint64_t, 2>;

// Returns the largest power of two, at most 16, that divides all of `bytes`: addresses, lengths and steps. A copy may
// then move pieces of this size.
inline size_t LargestMove(std::initializer_list<int64_t> bytes) {
  uint64_t all = kPackBytes;
  for (const int64_t value : bytes) all |= static_cast<uint64_t>(value);
  return static_cast<size_t>(all & (~all + 1));
}
inline int64_t AddressOf(const void* data) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(data)); }

// Calls fn(T()) for a T of so many bytes, a result of LargestMove.
template <typename Fn>
void ForMoves(size_t bytes, const char* what, const Fn& fn) {
  if (bytes == sizeof(Move16)) return fn(Move16());
  ForSizes(bytes, what, fn);
}

}  // namespace cohort::cuda
