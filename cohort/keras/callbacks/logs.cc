#include "cohort/keras/callbacks/logs.h"

namespace cohort::keras {

std::optional<double> FindLog(const Logs& logs, std::string_view name) {
  for (const auto& [key, value] : logs) {
    if (key == name) return value;
  }
  return std::nullopt;
}

void SetLog(Logs& logs, std::string_view name, double value) {
  for (auto& [key, old] : logs) {
    if (key == name) {
      old = value;
      return;
    }
  }
  logs.emplace_back(name, value);
}

}  // namespace cohort::keras
