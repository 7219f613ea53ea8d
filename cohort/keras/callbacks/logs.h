// Logs: the values that a training loop reports, with their names, in the order in which they are shown.
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

// "loss" comes first. Then come the losses of the outputs, if there are several, and the metrics in the order of
// Compile. Then come the "val_..." values in the same order, and last the values that callbacks add. Names are unique.
using Logs = std::vector<std::pair<std::string, double>>;

COHORT_EXPORT std::optional<double> FindLog(const Logs& logs, std::string_view name);
// Replaces the value of `name` or appends it.
COHORT_EXPORT void SetLog(Logs& logs, std::string_view name, double value);

// The logs of a batch. The batch's own loss is known after every step. The running values of the epoch are read from
// the variables of the graph only if a callback calls Running. A BatchLogs is valid during one call of a callback, on
// the thread of that call.
class COHORT_EXPORT BatchLogs {
 public:
  // `read` returns the running values: means since the epoch began. It is called at most once, by the first call of
  // Running.
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
