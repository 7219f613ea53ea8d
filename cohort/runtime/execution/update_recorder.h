// UpdateRecorder: makes data of the updates of one run of a plan, for the observer of the update gate.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "cohort/device/update_observer.h"
#include "cohort/runtime/execution/gate_pass.h"
#include "cohort/runtime/plan/plan.h"

namespace cohort {

// A StepRun owns one from the first update on that is observed. A run has the turn of its gate from an update on until
// it has made its last one, or until its thread pauses: it waits, moves to another thread, or ends. So a run that has
// the turn never waits for another one. The thread may come into another run meanwhile, because a send brings a value
// to another device of the task, a body of a function is called, or a failure wakes the waiting threads. If that run updates
// variables, the turn goes over to it.
// Its functions are called by one thread at a time.
class UpdateRecorder {
 public:
  // `on_failure` is told if the observer has thrown.
  UpdateRecorder(const Plan& plan, GatePass& gate, std::function<void(const Status&)> on_failure);
  UpdateRecorder(const UpdateRecorder&) = delete;
  UpdateRecorder& operator=(const UpdateRecorder&) = delete;

  // The kernel of `node` is about to run in `context`: takes the turn if the run does not have it, and keeps the
  // inputs. Throws InvalidArgumentError if the node has a handle of something else than a variable.
  void BeginUpdate(const PlanNode& node, const KernelContext& context);
  // The kernel has run, or has enqueued its work.
  void UpdateDone();
  // Gives what was recorded to the observer and ends the turn, if the run has it. On a device with streams it waits for
  // the stream first, and gives what has been applied.
  void EndTurn();

 private:
  const std::shared_ptr<const UpdateOp>& OpOf(const Node& node);
  // Leaves in the set what the stream has applied.
  void WaitForStream();

  const Plan& plan_;
  GatePass& gate_;
  const std::function<void(const Status&)> on_failure_;
  std::map<const Node*, std::shared_ptr<const UpdateOp>> ops_;
  bool has_turn_ = false;
  // Of the turn:
  const StepError* error_ = nullptr;
  int64_t applied_before_ = 0;
  UpdateRecord under_way_;
  UpdateSet set_;
};

}  // namespace cohort
