// ClosureUpdates: makes each update of a closure once, however often the closure runs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/device/applied_updates.h"
#include "cohort/device/kernel.h"
#include "cohort/runtime/plan/plan.h"

namespace cohort {

// A StepRun makes it at its first step of a closure, and owns it. The runs of the functions that the step calls share
// it. Thread-safe. The text by which AppliedUpdates knows an update says inside of which calls it is made, which op
// changes which resources, and how many equal updates the step has come to before. It does not depend on the names of
// nodes and functions, which differ between the workers' copies of a closure's function. If two loops of one step that
// make equal updates of one variable run at the same time, the order of these updates is not defined. A further attempt
// then makes as many of them as were missing, but perhaps with the other loop's values.
class ClosureUpdates {
 public:
  explicit ClosureUpdates(AppliedUpdates& applied) : applied_(applied) {}

  // A new step of a closure begins.
  void BeginStep(const ClosureId& closure) COHORT_EXCLUDES(mu_);
  // Returns the text of the node's update if the update has to be made (see AppliedUpdates::Begin), and otherwise
  // nullopt.
  std::optional<std::string> Begin(const Node& node, const KernelContext& context) COHORT_EXCLUDES(mu_);
  // The update, for which Begin has returned `update`, has failed.
  void Undo(const std::string& update) COHORT_EXCLUDES(mu_);
  // Only the first `applied` updates for which Begin has returned a text were made; the others have failed.
  void UndoAfter(size_t applied) COHORT_EXCLUDES(mu_);
  // Returns whether the addition of a node that adds to a resource (OpDef::AddsToResource), whose kernel may wait, has
  // to be made.
  bool BeginAddition(const Node& node, const KernelContext& context) COHORT_EXCLUDES(mu_);
  // The addition that the node has begun inside of the call `caller` has failed. Does nothing if BeginAddition has
  // returned false, or was not called.
  void UndoAddition(const Node& node, const CallFrame* caller) COHORT_EXCLUDES(mu_);

 private:
  // Counts the update or addition of the node. Returns its text if it has to be made.
  std::optional<std::string> Count(const Node& node, const KernelContext& context) COHORT_REQUIRES(mu_);

  AppliedUpdates& applied_;
  Mutex mu_;
  ClosureId closure_ COHORT_GUARDED_BY(mu_);
  std::map<std::string, int> made_ COHORT_GUARDED_BY(mu_);  // how many updates of a text the step has come to
  std::vector<std::string> begun_ COHORT_GUARDED_BY(mu_);   // the updates for which Begin has returned a text
  std::map<std::pair<const Node*, const CallFrame*>, std::string> additions_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort
