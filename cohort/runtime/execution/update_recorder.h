// UpdateRecorder: records the updates of one run of a plan as data, for the observer of the update gate.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "cohort/device/update_observer.h"
#include "cohort/runtime/execution/gate_pass.h"
#include "cohort/runtime/plan/plan.h"

namespace cohort {

// A StepRun makes it at its first update that is observed, and owns it. One thread at a time calls its functions. The
// first update of a run begins the run's turn at the update gate. The turn ends after the last update. It ends earlier
// if the run sends a value, starts a kernel that waits, or pauses (before it waits, moves to another thread or ends);
// the next update then begins another turn. So a run that has the turn never waits for another run. While a run has the
// turn, its thread may begin to work for a second run: a failure in the first run can end a waiting kernel of the
// second run, and the second run then continues on this thread. If the second run updates a variable, the first run's
// turn ends, and the second run begins its own.
class UpdateRecorder {
 public:
  // Calls `on_failure` if the observer has thrown, or if the updates on a stream do not end: the device has failed, or
  // they take longer than 10 minutes.
  UpdateRecorder(const Plan& plan, GatePass& gate, std::function<void(const Status&)> on_failure);
  UpdateRecorder(const UpdateRecorder&) = delete;
  UpdateRecorder& operator=(const UpdateRecorder&) = delete;

  // Call it before the kernel of `node` runs in `context`. Begins a turn if the run does not have one, and keeps the
  // node's inputs. A node of joined updates (graph/joined_updates.h) is recorded as these updates. Throws
  // InvalidArgumentError if an input is the handle of a resource that is not a variable.
  void BeginUpdate(const PlanNode& node, const KernelContext& context);
  // Call it after the kernel has run, or has enqueued its work. Adds the update to the record of the turn.
  void UpdateDone();
  // If the run has the turn, gives the recorded updates to the observer and ends the turn. On a device with streams,
  // waits for the stream first, and gives only the updates that were applied.
  void EndTurn();

 private:
  using UpdateOps = std::vector<std::shared_ptr<const UpdateOp>>;
  // Returns the updates of the node: one, or those that it joins.
  const UpdateOps& OpsOf(const Node& node);
  // Waits until the stream has run the updates. Removes from set_ the updates that were not applied, and from the
  // others the positions that are no rows.
  void WaitForStream();

  const Plan& plan_;
  GatePass& gate_;
  const std::function<void(const Status&)> on_failure_;
  std::map<const Node*, UpdateOps> ops_;
  std::set<const UpdateOp*> may_have_no_rows_;  // those of nodes with the attribute kRowsMayBeNone
  bool has_turn_ = false;
  // The members below are used while the run has the turn.
  const StepError* error_ = nullptr;
  int64_t applied_before_ = 0;
  std::vector<UpdateRecord> under_way_;
  UpdateSet set_;
  std::vector<size_t> ends_;  // how many updates set_ has after each node that was recorded
};

}  // namespace cohort
