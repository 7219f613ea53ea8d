// Builds texts from values: StrCat("step ", 3, ": ", shape), StrJoin(dims, ",").
#pragma once

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
