// Numbers that are written as text: fields of CSV files and strings of tensors.
#pragma once

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "cohort/core/text/ascii_spaces.h"

namespace cohort {

// Returns the number that the whole of `text` is, or nullopt if it is none. One sign, and white space at the ends, are
// allowed. T is float, double, or a type of integers. Of integers, those that T cannot hold are none. As in TensorFlow,
// floating numbers may be "inf", "nan" or hexadecimal without a fraction (0x10); those that are too large are infinite,
// and those that are too small are 0 or the nearest number.
template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  text = WithoutSpacesAround(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  T value{};
  if constexpr (std::is_floating_point_v<T>) {
    if (text.find('(') != text.npos) return std::nullopt;  // from_chars takes "nan(1)"
    const bool negative = text.starts_with('-');
    const std::string_view digits = text.substr(negative ? 1 : 0);
    const bool hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
    if (hexadecimal && digits.find_first_not_of("0123456789abcdefABCDEF", 2) != digits.npos) return std::nullopt;
    // from_chars wants hexadecimal digits without "0x".
    const auto result = hexadecimal ? std::from_chars(digits.data() + 2, end, value, std::chars_format::hex)
                                    : std::from_chars(text.data(), end, value);
    if (result.ptr != end) return std::nullopt;
    if (result.ec == std::errc()) return hexadecimal && negative ? -value : value;
    if (result.ec != std::errc::result_out_of_range) return std::nullopt;
    const std::string copy(text);
    if constexpr (std::is_same_v<T, float>) return std::strtof(copy.c_str(), nullptr);
    if constexpr (std::is_same_v<T, double>) return std::strtod(copy.c_str(), nullptr);
  } else {
    const auto result = std::from_chars(text.data(), end, value);
    if (result.ptr != end || result.ec != std::errc()) return std::nullopt;
    return value;
  }
}

}  // namespace cohort
