// What kernels need that move elements without a look at them: the largest piece that one instruction can move, and a
// fast division of positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "cohort/backends/cuda/dialect/element_type.h"
#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/dialect/pack.h"

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

// Divides numbers that are not negative by a fixed divisor. Numbers below 2^31 are divided by a multiplication.
class Divider {
 public:
  Divider() = default;
  // Requires: `divisor` is at least 1.
  explicit Divider(int64_t divisor) : divisor_(divisor) {
    if (divisor >= kSmall) {  // the quotient of a small number is 0
      shift_ = 40;
      return;
    }
    while ((int64_t{1} << shift_) < divisor) ++shift_;
    const auto d = static_cast<uint64_t>(divisor);
    multiplier_ = static_cast<uint32_t>((((uint64_t{1} << shift_) - d) << 32) / d + 1);
  }
  COHORT_KERNEL int64_t divisor() const { return divisor_; }
  COHORT_KERNEL int64_t Divide(int64_t n) const {
    if (n >= kSmall) return n / divisor_;
    const auto small = static_cast<uint64_t>(n);
    return static_cast<int64_t>((((small * multiplier_) >> 32) + small) >> shift_);
  }
  // Returns the rest, and sets *quotient.
  COHORT_KERNEL int64_t Split(int64_t n, int64_t* quotient) const {
    *quotient = Divide(n);
    return n - *quotient * divisor_;
  }

 private:
  static constexpr int64_t kSmall = int64_t{1} << 31;
  int64_t divisor_ = 1;
  uint32_t multiplier_ = 1;
  uint32_t shift_ = 0;
};

}  // namespace cohort::cuda
