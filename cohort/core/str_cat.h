// Message building: StrCat("step ", 3, ": ", shape) and StrJoin(dims, ",").
#pragma once

#include <sstream>
#include <string>

namespace cohort {

// Everything that has operator<<, written one after another.
template <typename... Args>
std::string StrCat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return std::move(out).str();
}

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
