// bfloat16: a 16-bit floating-point number. Its bits are the upper half of an IEEE float32.
#pragma once

#include <bit>
#include <cstdint>

#include "cohort/core/export.h"

namespace cohort {

// A conversion from float rounds to the nearest value; a tie goes to the even one. NaN stays NaN.
struct COHORT_EXPORT bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>((u >> 16) | 0x40u);  // quiet NaN
    } else {
      bits = static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static bfloat16 FromBits(uint16_t bits) {
    bfloat16 value;
    value.bits = bits;
    return value;
  }
  friend bool operator==(bfloat16 a, bfloat16 b) { return float(a) == float(b); }
};

}  // namespace cohort
