// MirroredVariables: keeps a copy of each variable on every replica's device. Internal to distribute/.
#pragma once

#include <string>

#include "cohort/distribute/variable_placer.h"

namespace cohort::distribute {

// The copies of the variable "w" are called "w", "w/replica_1", "w/replica_2", ... The first copy represents all of
// them. The initial value is computed once, so all copies begin equal. The Strategy owns this object; it is immutable
// and thread-safe.
class MirroredVariables : public VariablePlacer {
 public:
  VariableInfo* Create(const Strategy& strategy, Graph& graph, const VariableMaker& next,
                       const VariableRequest& request) const override;
  bool makes_copies() const override { return true; }
  ops::Variable CopyOf(const Strategy& strategy, const ops::Variable& variable, int local) const override;

 protected:
  // Makes the initial value of each copy of one variable. It is called once for each copy, in order, with the copy's
  // number and the first copy (null if this is the first copy).
  using InitialValues = std::function<Output(int local, const VariableInfo* first)>;
  virtual InitialValues InitialValuesOf(const Strategy& strategy, Graph& graph, const VariableRequest& request) const;
};

}  // namespace cohort::distribute
