// e^x for float32, written so that compilers vectorize a loop over it. The relative error is below 2e-7. The functions
// for float64 call the C library. Internal to backends/cpu/kernels.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "cohort/backends/cpu/kernels/simd.h"

namespace cohort::cpu {

// The two parts of e^x. With x = n ln 2 + r and |r| <= ln 2 / 2, `minus_one` is e^r - 1, and `power` is 2^n.
// `minus_one` is computed by the Taylor series up to r^7, whose remainder is below 6e-9.
struct ReducedExp {
  float minus_one;
  float power;
};

// Returns the parts of e^x. Uses -87 for a smaller x, and 88 for a larger x.
COHORT_INLINE ReducedExp ReduceExp(float x) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;                              // has few bits, so that n * kLn2High is exact
  constexpr float kLn2Low = -2.12194440e-4f;                            // ln 2 - kLn2High
  constexpr float kMagic = 12582912.0f;                                 // 1.5 * 2^23: adding it rounds to an integer
  const float clamped = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);  // NaN stays NaN
  const float n = (clamped * kLog2E + kMagic) - kMagic;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;
  const float p = 1.0f / 2 + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720 + r * (1.0f / 5040)))));
  const auto exponent = static_cast<int32_t>(n == n ? n : 0.0f);
  return {r + r * r * p, std::bit_cast<float>((exponent + 127) << 23)};
}

// Returns e^x. If x is below -87, returns 0, so there are no denormal numbers. If x is above 88, returns 1.65e38, so
// that quotients stay finite.
COHORT_INLINE float Exp(float x) {
  const ReducedExp e = ReduceExp(x);
  const float result = e.power * e.minus_one + e.power;
  return x < -87.0f ? 0.0f : result;
}
// Returns e^x as the op Exp does. The result is infinite if x is 88.73 or more, a denormal number if x is between
// -103.9 and -87.4, and 0 if x is below -104.
COHORT_INLINE float FullExp(float x) {
  // Computes e^(x/2) and squares it, so that the power of two stays a normal number.
  const float half = x * 0.5f;
  const float low = half < -60.0f ? -60.0f : (half > 60.0f ? 60.0f : half);
  const ReducedExp e = ReduceExp(low);
  const float root = e.power * e.minus_one + e.power;
  return root * root;
}
COHORT_INLINE double FullExp(double x) { return std::exp(x); }
// Returns e^x - 1 without loss of precision for small x. If x is above 88, returns 1.65e38.
COHORT_INLINE float ExpM1(float x) {
  const ReducedExp e = ReduceExp(x);
  return e.power * e.minus_one + (e.power - 1.0f);
}
COHORT_INLINE double Exp(double x) { return std::exp(x); }
COHORT_INLINE double ExpM1(double x) { return std::expm1(x); }

}  // namespace cohort::cpu
