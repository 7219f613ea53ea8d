// VariablePlacer: how a kind of strategy places its variables. Each kind is one class in a source of its own. To add a
// kind, add such a class.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/partitioned_variables.h"
#include "cohort/ops/variables.h"

namespace cohort::distribute {

class Strategy;

// Decides, for each variable that is made in a strategy's scope, on which device it is and of how many variables it
// consists. The decision may depend on the request: name, shape and dtype. Its strategy owns it. Immutable and
// thread-safe.
class COHORT_EXPORT VariablePlacer {
 public:
  virtual ~VariablePlacer() = default;

  // Makes the requested variable or variables, each by a call of `next` in a device scope. Returns the variable that
  // represents all of them: the first of several copies, or the variable that CreateInParts returns for parts. The
  // strategy does not call it for local variables.
  virtual VariableInfo* Create(const Strategy& strategy, Graph& graph, const VariableMaker& next,
                               const VariableRequest& request) const = 0;

  // Returns true if each replica has a copy of every variable. If false, all replicas of a process use the same
  // variables, and an optimizer updates each of them once in a step.
  virtual bool makes_copies() const = 0;
  // Returns the copy of replica `local` of this process. Requires: makes_copies(). Throws FailedPreconditionError for a
  // variable that the placer has not made.
  virtual ops::Variable CopyOf(const Strategy& strategy, const ops::Variable& variable, int local) const;

  // Returns the device of nodes that replicas share, such as sums and the variables of an optimizer. "": the graph's
  // scopes decide. The strategy calls it only if makes_copies() is false.
  virtual std::string shared_device() const { return ""; }
  // Returns the devices of this process that hold variables but have no replica. Sessions get these devices too.
  virtual std::vector<std::string> devices() const { return {}; }
};

// An implementation of Create makes parts with it.
using ops::CreateInParts;
using ops::VariablePart;

}  // namespace cohort::distribute
