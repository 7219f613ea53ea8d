// BFloat16: a 16-bit floating-point number for kernels. Its bits are the upper half of a float32. Conversions give the
// same bits as cohort/core/bfloat16.h, whose functions a card cannot call.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cohort/backends/cuda/dialect/launch.h"

namespace cohort::cuda {

// Returns the value whose bytes are those of `from`.
template <typename To, typename From>
COHORT_KERNEL To BitCast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

// A conversion from float rounds to the nearest value; a tie goes to the even one. NaN stays NaN.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  COHORT_KERNEL explicit BFloat16(float value) {
    const auto u = BitCast<uint32_t>(value);
    bits = (u & 0x7fffffffU) > 0x7f800000U ? static_cast<uint16_t>((u >> 16) | 0x40U)  // quiet NaN
                                           : static_cast<uint16_t>((u + 0x7fffU + ((u >> 16) & 1U)) >> 16);
  }
  COHORT_KERNEL explicit operator float() const { return BitCast<float>(static_cast<uint32_t>(bits) << 16); }
};

// The type in which elements of type T are computed: float for BFloat16, else T.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;

}  // namespace cohort::cuda
