// Builds texts from values: StrCat("step ", 3, ": ", shape), StrJoin(dims, ",").
#pragma once

#include <array>
#include <charconv>
#include <sstream>
#include <string>

namespace cohort {

// Returns the texts of all arguments, one after another. Each argument needs an operator<<.
template <typename... Args>
std::string StrCat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return std::move(out).str();
}

// Returns the shortest text that is read back as the same number, for float and double: "0.1".
template <typename T>
std::string ShortestText(T value) {
  std::array<char, 40> text;
  return std::string(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
}

// Returns the texts of all elements of `range` with `separator` between them.
template <typename Range>
std::string StrJoin(const Range& range, const char* separator) {
  std::ostringstream out;
  const char* between = "";
  for (const auto& item : range) {
    out << between << item;
    between = separator;
  }
  return std::move(out).str();
}

}  // namespace cohort
