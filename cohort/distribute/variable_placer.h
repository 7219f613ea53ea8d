// VariablePlacer: how a kind of strategy keeps its variables. Each kind is one class with a source of its own; adding a
// kind (parameter servers, for instance) is adding one.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/variables.h"

namespace cohort::distribute {

class Strategy;

// Decides for each variable that is made in a strategy's scope, by its name, shape and dtype, where it lives and of how
// many variables it consists. Owned by its strategy, immutable, thread-safe.
class COHORT_EXPORT VariablePlacer {
 public:
  virtual ~VariablePlacer() = default;

  // Makes what `request` asks for, each variable by a call of `next` in a device scope, and returns the variable that
  // stands for all of them: the first of several copies, or the whole of several parts (CreateInParts). Never called
  // for local variables.
  virtual VariableInfo* Create(const Strategy& strategy, Graph& graph, const VariableMaker& next,
                               const VariableRequest& request) const = 0;

  // Whether each replica has a copy of every variable. If not, all replicas of a process use the same variables, and an
  // optimizer updates each of them once a step.
  virtual bool makes_copies() const = 0;
  // Returns the copy of replica `local` of this process. Called only if makes_copies(). Throws FailedPreconditionError
  // for a variable that the placer has not made.
  virtual ops::Variable CopyOf(const Strategy& strategy, const ops::Variable& variable, int local) const;

  // The device of what replicas share beside variables, such as sums and the variables of an optimizer; "": wherever
  // scopes say. Read only if makes_copies() is false.
  virtual std::string shared_device() const { return ""; }
  // Devices of this process that variables need beside the replicas' own.
  virtual std::vector<std::string> devices() const { return {}; }
};

// Rows of a variable, and the device where they live.
struct COHORT_EXPORT VariablePart {
  int64_t rows = 0;
  std::string device;
};
// For Create: makes `request` in parts, which are called "name/part_0", "name/part_1", ... Each begins with its rows of
// the initial value, which is computed once, on the first part's device. Throws InvalidArgumentError unless the rows
// make up axis 0 of the requested shape.
COHORT_EXPORT VariableInfo* CreateInParts(Graph& graph, const VariableMaker& next, const VariableRequest& request,
                                          const std::vector<VariablePart>& parts);

}  // namespace cohort::distribute
