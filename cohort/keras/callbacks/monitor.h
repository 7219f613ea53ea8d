// A quantity in the logs that a callback watches for improvement. Internal to keras/.
#pragma once

#include <optional>
#include <string>

#include "cohort/keras/callbacks/callbacks.h"

namespace cohort::keras {

class Monitor {
 public:
  // `owner`: the callback's name, for messages.
  Monitor(std::string owner, std::string name, MonitorMode mode, double min_delta = 0.0)
      : owner_(std::move(owner)),
        name_(std::move(name)),
        mode_(mode),
        min_delta_(min_delta < 0 ? -min_delta : min_delta) {}

  const std::string& name() const { return name_; }
  // Decides what kAuto means. Throws InvalidArgumentError where the host does not know the quantity's direction.
  void Resolve(const CallbackHost& host);
  // The monitored value; where it is missing a warning that lists what there is.
  std::optional<double> Find(const Logs& logs) const;
  // Whether `value` is better than `reference` by more than min_delta; anything is better than none.
  bool Improves(double value, const std::optional<double>& reference) const;

 private:
  const std::string owner_;
  const std::string name_;
  MonitorMode mode_;
  const double min_delta_;
};

// For messages: "None" or five decimals.
std::string FiveDecimals(const std::optional<double>& value);
// A float as Python prints it, with as many digits as it takes: "0.001", "2.0", "1e-05".
std::string PythonNumber(double value);

}  // namespace cohort::keras
