// The memory of a FakeDriver, which is memory of the host. For tests only.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>

namespace cohort::cuda {

// The value of every byte of memory that nobody has written: floats are then NaN.
inline constexpr unsigned char kFakePoison = 0xff;
inline constexpr std::align_val_t kFakeAlignment{256};

// Returns poisoned memory, or null if there is not enough.
inline void* NewFakeMemory(size_t bytes) {
  void* data = ::operator new(bytes, kFakeAlignment, std::nothrow);
  if (data != nullptr) std::memset(data, kFakePoison, bytes);
  return data;
}
inline void DeleteFakeMemory(void* data) { ::operator delete(data, kFakeAlignment); }

}  // namespace cohort::cuda
