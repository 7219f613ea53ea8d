// MirroredVariables: a copy of each variable on every replica's device. Internal to distribute/.
#pragma once

#include <string>

#include "cohort/distribute/variable_placer.h"

namespace cohort::distribute {

// The copies of variable "w" are called "w", "w/replica_1", "w/replica_2", ...; the first one stands for all. Copies
// begin equal: the initial value is computed once.
class MirroredVariables : public VariablePlacer {
 public:
  VariableInfo* Create(const Strategy& strategy, Graph& graph, const VariableMaker& next,
                       const VariableRequest& request) const override;
  bool makes_copies() const override { return true; }
  ops::Variable CopyOf(const Strategy& strategy, const ops::Variable& variable, int local) const override;

 protected:
  // Returns what makes the initial values of one variable's copies, called once a copy, in order, with the copy's
  // number and the first copy (null for the first one itself).
  using InitialValues = std::function<Output(int local, const VariableInfo* first)>;
  virtual InitialValues InitialValuesOf(const Strategy& strategy, Graph& graph, const VariableRequest& request) const;
};

}  // namespace cohort::distribute
