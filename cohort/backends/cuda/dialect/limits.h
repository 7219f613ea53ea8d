// Limits of number types as constants, because kernels cannot call the functions of std::numeric_limits.
#pragma once

#include <limits>

namespace cohort::cuda {

template <typename W>
inline constexpr W kInfinity = std::numeric_limits<W>::infinity();
template <typename W>
inline constexpr W kNan = std::numeric_limits<W>::quiet_NaN();
// The lowest and the highest number; of floating-point types the infinities.
template <typename W>
inline constexpr W kLowest = std::numeric_limits<W>::has_infinity ? -std::numeric_limits<W>::infinity()
                                                                  : std::numeric_limits<W>::lowest();
template <typename W>
inline constexpr W kHighest = std::numeric_limits<W>::has_infinity ? std::numeric_limits<W>::infinity()
                                                                   : std::numeric_limits<W>::max();

}  // namespace cohort::cuda
