// JsonLine: one line of output, as the peers' timing.py prints it.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/peers/samples.h"
#include "cohort/core/str_cat.h"

namespace cohort::gpu_bench {

inline double MedianOf(const std::vector<double>& times) { return Median(times); }

// Collects fields and prints them. The names must need no escapes.
class JsonLine {
 public:
  JsonLine& Text(const std::string& name, const std::string& value) {
    std::string text;
    for (const char c : value) {
      if (c == '"' || c == '\\') text += '\\';
      text += c == '\n' ? ' ' : c;
    }
    return Add(name, "\"" + text + "\"");
  }
  JsonLine& Number(const std::string& name, double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return Add(name, text);
  }
  // Adds the median, the least and the largest of the times, which are in ms.
  JsonLine& Times(const std::vector<double>& times) {
    Number("step_ms", MedianOf(times));
    Number("least_ms", *std::min_element(times.begin(), times.end()));
    return Number("most_ms", *std::max_element(times.begin(), times.end()));
  }
  void Print() const {
    std::printf("{%s}\n", fields_.c_str());
    std::fflush(stdout);
  }

 private:
  JsonLine& Add(const std::string& name, const std::string& value) {
    fields_ += StrCat(fields_.empty() ? "" : ", ", "\"", name, "\": ", value);
    return *this;
  }
  std::string fields_;
};

}  // namespace cohort::gpu_bench
