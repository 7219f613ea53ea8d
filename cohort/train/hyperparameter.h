// A number that an optimizer uses: fixed when the graph is built, or a value of the graph (a schedule, a feed).
#pragma once

#include <map>
#include <string>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/variables.h"

namespace cohort::train {

class COHORT_EXPORT Hyperparameter {
 public:
  Hyperparameter(double value) : value_(value) {}
  // A scalar of any floating dtype.
  Hyperparameter(Output value) : tensor_(value) {}

  // The number as a scalar of `dtype` for an update of `variable`. A fixed one becomes one constant `name` for each
  // device that holds variables, so that no step sends it anywhere.
  Output For(const ops::Variable& variable, DType dtype, const std::string& name);
  Output For(const ops::Variable& variable, const std::string& name) { return For(variable, variable.dtype(), name); }
  bool is_fixed() const { return !tensor_.valid(); }
  double value() const { return value_; }  // of a fixed one

 private:
  double value_ = 0.0;
  Output tensor_;
  std::map<std::pair<std::string, DType>, Output> made_;  // by device and dtype
};

}  // namespace cohort::train
