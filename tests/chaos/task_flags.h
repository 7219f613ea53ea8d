// Reads the command lines of the tasks under test. Each flag has the form --name=value.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "cohort/core/error.h"

namespace cohort::testing {

// Flags that nothing reads are ignored.
class Flags {
 public:
  // Throws InvalidArgumentError for a word that has another form.
  Flags(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      const size_t equals = word.find('=');
      if (word.rfind("--", 0) != 0 || equals == std::string::npos) {
        throw InvalidArgumentError("expected --name=value; got " + word);
      }
      values_[word.substr(2, equals - 2)] = word.substr(equals + 1);
    }
  }
  std::string Text(const std::string& name, const std::string& otherwise = "") const {
    const auto it = values_.find(name);
    return it == values_.end() ? otherwise : it->second;
  }
  double Number(const std::string& name, double otherwise) const {
    const std::string text = Text(name);
    return text.empty() ? otherwise : std::stod(text);
  }
  int64_t Integer(const std::string& name, int64_t otherwise) const {
    return static_cast<int64_t>(Number(name, static_cast<double>(otherwise)));
  }
  std::chrono::milliseconds Ms(const std::string& name, int64_t otherwise) const {
    return std::chrono::milliseconds(Integer(name, otherwise));
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace cohort::testing
