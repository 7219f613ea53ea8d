// Monitor: a value in the logs that a callback watches for improvement. Internal to keras/.
#pragma once

#include <optional>
#include <string>

#include "cohort/keras/callbacks/callbacks.h"

namespace cohort::keras {

// The callback that watches the value owns it. Only the thread of Fit calls it.
class Monitor {
 public:
  // `owner` is the callback's name, for messages.
  Monitor(std::string owner, std::string name, MonitorMode mode, double min_delta = 0.0)
      : owner_(std::move(owner)),
        name_(std::move(name)),
        mode_(mode),
        min_delta_(min_delta < 0 ? -min_delta : min_delta) {}

  const std::string& name() const { return name_; }
  // Replaces the mode kAuto by the direction that the host returns for this value. Throws InvalidArgumentError if that
  // is kNone. Call it before Improves.
  void Resolve(const CallbackHost& host);
  // Returns the monitored value. If the logs do not have it, returns nullopt and logs a warning that lists the names in
  // the logs.
  std::optional<double> Find(const Logs& logs) const;
  // Returns true if `value` is better than `reference` by more than min_delta, or if there is no reference.
  bool Improves(double value, const std::optional<double>& reference) const;

 private:
  const std::string owner_;
  const std::string name_;
  MonitorMode mode_;
  const double min_delta_;
};

// Returns "None" or the number with five decimals, for messages.
std::string FiveDecimals(const std::optional<double>& value);
// Returns the number as Python prints a float, with as many digits as needed: "0.001", "2.0", "1e-05".
std::string PythonNumber(double value);

}  // namespace cohort::keras
