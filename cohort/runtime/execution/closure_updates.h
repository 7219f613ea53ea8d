// ClosureUpdates: makes each update of a closure once, however often the closure runs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/device/applied_updates.h"
#include "cohort/device/kernel.h"
#include "cohort/runtime/plan/plan.h"

namespace cohort {

// A StepRun makes it at its first step of a closure, and owns it. One thread at a time calls its functions, but any
// thread may call UndoAddition. The text by which AppliedUpdates knows an update says which op changes which resources,
// and how many equal updates the step has made before: it does not depend on the names of nodes, which differ between
// the workers' copies of a function.
class ClosureUpdates {
 public:
  explicit ClosureUpdates(AppliedUpdates& applied) : applied_(applied) {}

  // A new step of a closure begins.
  void BeginStep(const ClosureId& closure) {
    closure_ = closure;
    made_.clear();
    begun_.clear();
    MutexLock lock(mu_);
    additions_.clear();
  }
  // Returns whether the update of the node has to be made; see AppliedUpdates::Begin.
  bool Begin(const Node& node, const KernelContext& context);
  // The same for a node that adds to a resource (OpDef::AddsToResource), whose kernel may wait.
  bool BeginAddition(const Node& node, const KernelContext& context) COHORT_EXCLUDES(mu_);
  // The addition has failed. Does nothing if BeginAddition has returned false, or was not called.
  void UndoAddition(const Node& node) COHORT_EXCLUDES(mu_);
  // Only the first `applied` updates for which Begin has returned true were made; the others have failed.
  void UndoAfter(size_t applied);
  // The latest of these updates has failed.
  void UndoLatest() { UndoAfter(begun_.size() - 1); }

 private:
  // Returns the text of an update that the step comes to now.
  std::string TextOf(const Node& node, const KernelContext& context);

  AppliedUpdates& applied_;
  ClosureId closure_;
  std::map<std::string, int> made_;  // how many updates of an op on a variable the step has come to
  Mutex mu_;
  std::map<const Node*, std::string> additions_ COHORT_GUARDED_BY(mu_);
  std::vector<std::string> begun_;  // the updates for which Begin has returned true
};

}  // namespace cohort
