// Converts the numbers that a callback remembers to the values of a Callback::State. Internal to keras/.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "cohort/core/tensor.h"

namespace cohort::keras {

inline Tensor StateOf(const std::vector<double>& numbers) { return Tensor::Vector(numbers); }
// NaN represents a missing number.
inline double OrNan(const std::optional<double>& number) {
  return number.value_or(std::numeric_limits<double>::quiet_NaN());
}

// Returns `count` numbers that StateOf has stored. Returns nullopt if `values` does not begin with so many numbers.
inline std::optional<std::vector<double>> NumbersOf(const std::vector<Tensor>& values, int64_t count) {
  if (values.empty() || values[0].dtype() != DType::kFloat64 || !(values[0].shape() == Shape{count})) {
    return std::nullopt;
  }
  return values[0].ToVector<double>();
}
inline std::optional<double> OptionalOf(double number) {
  return std::isnan(number) ? std::nullopt : std::optional(number);
}

}  // namespace cohort::keras
