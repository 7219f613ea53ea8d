// PhiloxCounter: the random generator of cohort/core/philox.h for kernels, and the numbers that are made of its words.
// Uniform numbers have the same bits as the library's. Files *.cu include it.
#pragma once

#include <cmath>
#include <cstdint>

#include "cohort/backends/cuda/dialect/bfloat16.h"
#include "cohort/backends/cuda/dialect/launch.h"

namespace cohort::cuda {

// The state of a generator: a counter of 128 bits, the lowest word first, and a key. Plain data.
struct PhiloxCounter {
  uint32_t counter[4];
  uint32_t key[2];

  // Advances the counter as `count` calls of Next do.
  COHORT_KERNEL void Skip(uint64_t count) {
    const uint64_t low = ((static_cast<uint64_t>(counter[1]) << 32) | counter[0]) + count;
    counter[0] = static_cast<uint32_t>(low);
    counter[1] = static_cast<uint32_t>(low >> 32);
    if (low < count && ++counter[2] == 0) ++counter[3];
  }

  // Sets `words` to the next four words, and advances the counter.
  COHORT_KERNEL void Next(uint32_t (&words)[4]) {
    uint32_t x[4] = {counter[0], counter[1], counter[2], counter[3]};
    uint32_t k[2] = {key[0], key[1]};
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53} * x[0];
      const uint64_t b = uint64_t{0xCD9E8D57} * x[2];
      const uint32_t y[4] = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ k[0], static_cast<uint32_t>(b),
                             static_cast<uint32_t>(a >> 32) ^ x[3] ^ k[1], static_cast<uint32_t>(a)};
      for (int i = 0; i < 4; ++i) x[i] = y[i];
      k[0] += 0x9E3779B9;
      k[1] += 0xBB67AE85;
    }
    for (int i = 0; i < 4; ++i) words[i] = x[i];
    Skip(1);
  }
};

// Returns a uniform number in [0, 1) from 23 bits, from 52 bits, or from 7 bits.
COHORT_KERNEL float UniformFloatOf(uint32_t bits) {
  return BitCast<float>((uint32_t{127} << 23) | (bits & 0x7fffffU)) - 1.0F;
}
COHORT_KERNEL double UniformDoubleOf(uint32_t high, uint32_t low) {
  return BitCast<double>((uint64_t{1023} << 52) | (static_cast<uint64_t>(high & 0xfffffU) << 32) | low) - 1.0;
}
COHORT_KERNEL BFloat16 UniformBFloat16Of(uint32_t bits) {
  return BFloat16(BitCast<float>(((uint32_t{127} << 7) | (bits & 0x7fU)) << 16) - 1.0F);
}

// Set `out` to two independent standard normal numbers, made from two uniform ones (Box and Muller, 1958). Those of
// float32 round where the library rounds. Their logarithm, sine and cosine are computed in float64 and then rounded:
// the float32 functions of a card err by up to two units in the last place, and those of the host by less than one.
COHORT_KERNEL void NormalFloatsOf(uint32_t bits0, uint32_t bits1, float* out) {
  constexpr float kEpsilon = 1.0e-7F;
  const float uniform = UniformFloatOf(bits0);
  const auto logarithm = static_cast<float>(std::log(static_cast<double>(uniform < kEpsilon ? kEpsilon : uniform)));
  const float radius = std::sqrt(-2.0F * logarithm);
  const auto angle = static_cast<double>(static_cast<float>(2.0F * 3.14159265358979323846 * UniformFloatOf(bits1)));
  out[0] = static_cast<float>(std::sin(angle)) * radius;
  out[1] = static_cast<float>(std::cos(angle)) * radius;
}
COHORT_KERNEL void NormalDoublesOf(const uint32_t* bits, double* out) {
  constexpr double kEpsilon = 1.0e-7;
  const double uniform = UniformDoubleOf(bits[0], bits[1]);
  const double radius = std::sqrt(-2.0 * std::log(uniform < kEpsilon ? kEpsilon : uniform));
  const double angle = 2 * 3.14159265358979323846 * UniformDoubleOf(bits[2], bits[3]);
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}

}  // namespace cohort::cuda
