#include "cohort/keras/callbacks/monitor.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"

namespace cohort::keras {

void Monitor::Resolve(const CallbackHost& host) {
  if (mode_ != MonitorMode::kAuto) return;
  const std::string quantity = name_.rfind("val_", 0) == 0 ? name_.substr(4) : name_;
  switch (host.DirectionOf(quantity)) {
    case MetricDirection::kUp: mode_ = MonitorMode::kMax; return;
    case MetricDirection::kDown: mode_ = MonitorMode::kMin; return;
    case MetricDirection::kNone:
      throw InvalidArgumentError(StrCat("[keras/callbacks] ", owner_, " expected to know whether more or less of '",
                                        name_,
                                        "' is better; it is no metric of which that is known; set mode to kMin "
                                        "or kMax"));
  }
}

std::optional<double> Monitor::Find(const Logs& logs) const {
  const std::optional<double> value = FindLog(logs, name_);
  if (value) return value;
  std::string known;
  for (const auto& [name, unused] : logs) known += (known.empty() ? "" : ", ") + name;
  LogWarning("keras/callbacks", owner_, " monitors '", name_, "', which is not in the logs; there are ", known);
  return std::nullopt;
}

bool Monitor::Improves(double value, const std::optional<double>& reference) const {
  if (!reference) return true;
  return mode_ == MonitorMode::kMax ? value - min_delta_ > *reference : value + min_delta_ < *reference;
}

std::string FiveDecimals(const std::optional<double>& value) {
  if (!value) return "None";
  char text[64];
  std::snprintf(text, sizeof text, "%.5f", *value);
  return text;
}

std::string PythonNumber(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  std::string number(text, end);
  if (number.find_first_of(".e") == std::string::npos) number += ".0";
  return number;
}

}  // namespace cohort::keras
