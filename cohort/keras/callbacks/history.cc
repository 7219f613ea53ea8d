#include "cohort/keras/callbacks/history.h"

#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"

namespace cohort::keras {

void History::Add(int epoch, const Logs& logs) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  epochs_.push_back(epoch);
  for (auto& [name, values] : values_) values.push_back(FindLog(logs, name).value_or(kNone));
  for (const auto& [name, value] : logs) {
    if (Has(name)) continue;
    values_.emplace_back(name, std::vector<double>(epochs_.size(), kNone));
    values_.back().second.back() = value;
  }
}

std::vector<std::string> History::names() const {
  std::vector<std::string> all;
  for (const auto& [name, values] : values_) all.push_back(name);
  return all;
}

bool History::Has(std::string_view name) const {
  for (const auto& [key, values] : values_) {
    if (key == name) return true;
  }
  return false;
}

const std::vector<double>& History::operator[](std::string_view name) const {
  for (const auto& [key, values] : values_) {
    if (key == name) return values;
  }
  throw NotFoundError(StrCat("[keras/history] expected the name of a recorded quantity; got '", name, "'; there are ",
                             StrJoin(names(), ", ")));
}

void History::Plot(const std::string& path) const {
  constexpr std::string_view kEnding = ".svg";
  if (path.size() < kEnding.size() || path.substr(path.size() - kEnding.size()) != kEnding) {
    throw InvalidArgumentError(StrCat("[keras/history] expected a file name that ends in .svg; got '", path, "'"));
  }
  WriteFileAtomically(path, Svg());
}

}  // namespace cohort::keras
