// Functions with which tests read the output of the examples.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>

namespace cohort::testing {

// Returns the number after the last `label`. Fails the test if there is none.
inline double NumberBehind(const std::string& text, const std::string& label) {
  const size_t at = text.rfind(label);
  const char* begin = at == std::string::npos ? "" : text.c_str() + at + label.size();
  char* end = nullptr;
  const double number = std::strtod(begin, &end);
  EXPECT_NE(begin, end) << "no number behind \"" << label << "\" in: " << text;
  return number;
}

// Returns the last line that begins with `start`, or "".
inline std::string LastLineOf(const std::string& text, const std::string& start) {
  std::istringstream in(text);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(start, 0) == 0) last = line;
  }
  return last;
}

}  // namespace cohort::testing
