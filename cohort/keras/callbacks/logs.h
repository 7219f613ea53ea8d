// What a training loop reports: names and values, in the order in which they are shown.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/export.h"

namespace cohort::keras {

// "loss" first, then the metrics as compiled, then "val_..." in the same order. No name occurs twice.
using Logs = std::vector<std::pair<std::string, double>>;

COHORT_EXPORT std::optional<double> FindLog(const Logs& logs, std::string_view name);
// Replaces the value of `name` or appends it.
COHORT_EXPORT void SetLog(Logs& logs, std::string_view name, double value);

// The logs of a batch. The batch's own loss is at hand after every step; the running values of the epoch are read from
// the variables of the graph only when a callback asks.
class COHORT_EXPORT BatchLogs {
 public:
  // `read` gives the running values (means since the epoch began); called at most once.
  BatchLogs(double loss, std::function<Logs()> read) : loss_(loss), read_(std::move(read)) {}
  double loss() const { return loss_; }
  const Logs& Running() const {
    if (!running_) running_ = read_();
    return *running_;
  }

 private:
  double loss_;
  std::function<Logs()> read_;
  mutable std::optional<Logs> running_;
};

}  // namespace cohort::keras
