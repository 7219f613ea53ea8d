// ReadMetrics: a strict reader of the text format of Prometheus (version 0.0.4), for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace cohort::testing {

// The samples of a page: "name{label=\"value\"}" -> value.
using Metrics = std::map<std::string, double>;

// Fails the test if a metric has no HELP line, and then a TYPE line, directly in front of its samples; if a name, a
// label or a value is not one; if a sample occurs twice; if a counter does not end in _total; or if the last line has
// no end.
inline Metrics ReadMetrics(const std::string& page) {
  static const std::regex kHelp("# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)");
  static const std::regex kType("# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (gauge|counter)");
  static const std::regex kSample(
      "([a-zA-Z_:][a-zA-Z0-9_:]*)\\{([a-zA-Z_][a-zA-Z0-9_]*=\"([^\"\\\\]|\\\\[\\\\\"n])*\""
      "(,[a-zA-Z_][a-zA-Z0-9_]*=\"([^\"\\\\]|\\\\[\\\\\"n])*\")*)\\} ([0-9eE.+-]+|NaN|\\+Inf|-Inf)");
  Metrics metrics;
  std::set<std::string> seen;
  std::string helped, typed;
  EXPECT_TRUE(page.ends_with('\n'));
  std::istringstream in(page);
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (std::regex_match(line, match, kHelp)) {
      helped = match[1];
      EXPECT_TRUE(seen.insert(helped).second) << "twice: " << line;
    } else if (std::regex_match(line, match, kType)) {
      typed = match[1];
      EXPECT_EQ(typed, helped) << line;
      EXPECT_EQ(match[2] == "counter", typed.ends_with("_total")) << line;
    } else if (std::regex_match(line, match, kSample)) {
      EXPECT_EQ(match[1], typed) << line;
      char* end = nullptr;
      const std::string text = match[6];
      const double value = std::strtod(text.c_str(), &end);
      EXPECT_EQ(*end, '\0') << line;
      EXPECT_TRUE(metrics.emplace(line.substr(0, line.rfind(' ')), value).second) << "twice: " << line;
    } else {
      ADD_FAILURE() << "not a line of the format: '" << line << "'";
    }
  }
  return metrics;
}

}  // namespace cohort::testing
