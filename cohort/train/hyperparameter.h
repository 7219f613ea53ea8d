// Hyperparameter: a number that an optimizer uses. It is fixed when the graph is built, or it is a value of the graph,
// such as a learning-rate schedule or a fed value.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/variables.h"

namespace cohort::train {

// Optimizers own one for each of their numbers. One thread at a time.
class COHORT_EXPORT Hyperparameter {
 public:
  Hyperparameter(double value) : value_(value) {}
  // `value` must be a scalar of a floating dtype.
  Hyperparameter(Output value) : tensor_(value) {}

  // Returns the number as a scalar of `dtype`, for an update of `variable`. A fixed number becomes a constant `name` on
  // each device that has variables, so that no step sends it between devices.
  Output For(const ops::Variable& variable, DType dtype, const std::string& name);
  Output For(const ops::Variable& variable, const std::string& name) { return For(variable, variable.dtype(), name); }
  bool is_fixed() const { return !tensor_.valid(); }
  double value() const { return value_; }  // of a fixed one
  // Returns true if both are the same fixed number, or the same value of the graph.
  friend bool operator==(const Hyperparameter& a, const Hyperparameter& b) {
    return a.value_ == b.value_ && a.tensor_ == b.tensor_;
  }

 private:
  double value_ = 0.0;
  Output tensor_;
  std::map<std::pair<std::string, DType>, Output> made_;  // the constants, by device and dtype
};

}  // namespace cohort::train
