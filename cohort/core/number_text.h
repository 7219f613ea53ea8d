// Numbers that are written as text, as fields of CSV files are.
#pragma once

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace cohort {

// Returns `text` without the blanks and tabs at its ends.
inline std::string_view TrimBlanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Returns the number that the whole of `text` is, or nullopt if it is none. One sign, and blanks and tabs at the ends,
// are allowed. T is float, double, or a type of integers. Of integers, those that T cannot hold are none. Floating
// numbers that are too large are infinite, and those that are too small are 0 or the nearest number, as in TensorFlow.
template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  text = TrimBlanks(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc()) return value;
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc::result_out_of_range) {
      const std::string digits(text);
      if constexpr (std::is_same_v<T, float>) return std::strtof(digits.c_str(), nullptr);
      if constexpr (std::is_same_v<T, double>) return std::strtod(digits.c_str(), nullptr);
    }
  }
  return std::nullopt;
}

}  // namespace cohort
