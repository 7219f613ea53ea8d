// Functions with which tests read the output and the files of programs.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

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

// Returns the contents of the file, or "" if there is none.
inline std::string FileText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
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

// Expects that the regular expressions match whole lines of the text, in this order. There may be other lines between
// them. What a logger writes in front of a line, up to "] ", is not compared.
inline void ExpectLinesInOrder(const std::string& text, const std::vector<std::string>& patterns) {
  std::istringstream in(text);
  std::string line;
  for (const std::string& pattern : patterns) {
    const std::regex wanted("(^|\\] )(" + pattern + ")$");
    bool found = false;
    while (!found && std::getline(in, line)) found = std::regex_search(line, wanted);
    ASSERT_TRUE(found) << pattern << "\nis not in, or has another place in\n" << text;
  }
}

// A line of linear_regression.
struct StepLine {
  long step;
  float weight, biase, loss;
};

// Returns the step lines that linear_regression has printed. Every line that begins like a step line has to be one.
inline std::vector<StepLine> StepLines(const std::string& text) {
  std::vector<StepLine> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("step: ", 0) != 0) continue;
    StepLine read{};
    int end = 0;
    std::sscanf(line.c_str(), "step: %ld, weight: %f, biase: %f, loss: %f%n", &read.step, &read.weight, &read.biase,
                &read.loss, &end);
    EXPECT_EQ(static_cast<size_t>(end), line.size()) << line;
    lines.push_back(read);
  }
  return lines;
}

}  // namespace cohort::testing
