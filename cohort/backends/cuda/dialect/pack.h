// Pack: several elements that a thread loads or stores at once. A card moves 16 aligned bytes with one instruction.
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/launch.h"

namespace cohort::cuda {

inline constexpr int kPackBytes = 16;

// N elements of type T, aligned to their size together. N is a power of two, and they have at most kPackBytes bytes.
template <typename T, int N = kPackBytes / static_cast<int>(sizeof(T))>
struct alignas(sizeof(T) * N) Pack {
  static_assert(N > 0 && (N & (N - 1)) == 0 && sizeof(T) * N <= kPackBytes);
  static constexpr int kSize = N;
  T at[N];
};

// Returns the pack with the elements data[i * N] to data[i * N + N - 1]. Requires: IsAligned<T, N>(data).
template <int N, typename T>
COHORT_KERNEL Pack<T, N> LoadPack(const T* data, int64_t i) {
  return reinterpret_cast<const Pack<T, N>*>(data)[i];
}
template <int N, typename T>
COHORT_KERNEL void StorePack(T* data, int64_t i, const Pack<T, N>& pack) {
  reinterpret_cast<Pack<T, N>*>(data)[i] = pack;
}

// Returns whether packs of N elements may begin at `data`. Tensors begin at multiples of 64 bytes, but a slice of one
// may begin at any element.
template <typename T, int N>
inline bool IsAligned(const T* data) {
  return reinterpret_cast<uintptr_t>(data) % alignof(Pack<T, N>) == 0;
}

}  // namespace cohort::cuda
