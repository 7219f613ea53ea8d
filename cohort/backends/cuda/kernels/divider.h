// Divider: a fast division of positions, for kernels. The text of compiled chains contains it (chain_source.h).
#pragma once

#include <cstdint>

#include "cohort/backends/cuda/dialect/launch.h"

namespace cohort::cuda {

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
