// Numbers that are written as text, as fields of CSV files are.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace cohort {

// Returns `text` without the blanks and tabs at its ends.
inline std::string_view TrimBlanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Returns the number that the whole of `text` is, or nullopt if it is none, or if T cannot hold it. One sign, and
// blanks and tabs at the ends, are allowed. T is float, double, or a type of integers.
template <typename T>
std::optional<T> ParseNumber(std::string_view text) {
  text = TrimBlanks(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace cohort
