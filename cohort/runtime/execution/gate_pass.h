// GatePass: moves one step into the update gate of its task and out of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"
#include "cohort/device/update_gate.h"
#include "cohort/device/update_observer.h"

namespace cohort {

// Moves one step through the update gate. The step is inside from its first update of a variable to its last. A StepRun
// owns it and uses it again for later steps. Several threads may call inside, is_ahead and UpdateDone at the same time.
// The other methods are not thread-safe; the StepRun calls them from one thread at a time.
class GatePass {
 public:
  explicit GatePass(UpdateGate& gate) : gate_(gate) {}

  // Starts a step that makes `updates` updates. `by_caller` is true if this step is the body of a function and the step
  // that calls the function is inside the gate. Then this step neither enters nor leaves the gate.
  void Begin(int32_t updates, bool by_caller) {
    updates_left_.store(updates, std::memory_order_relaxed);
    by_caller_ = by_caller;
    inside_ = by_caller;
  }
  bool inside() const { return inside_; }
  // Returns whether the updates are given to an observer. Requires: inside().
  bool observed() const { return gate_.observed(); }
  // Returns whether the step has updates and has not entered yet.
  bool is_ahead() const { return updates_left_ > 0 && !inside_; }

  // Enters the gate if this is possible without waiting. Returns whether the step is inside.
  bool TryEnter() {
    if (!inside_) inside_ = gate_.TryEnterStep();
    return inside_;
  }
  // Waits until the step is inside. Must not be called on a thread that a step inside the gate needs (the compute
  // thread): the gate would never open.
  void Enter() {
    gate_.EnterStep();
    inside_ = true;
  }
  // Returns true if the gate has let the step in. Otherwise returns false and keeps `let_in`. When the gate lets the
  // step in later, it calls `let_in` once, on the thread that opens the gate or on a thread whose UpdateGate::Close has
  // failed. After the gate has let the step in, the step must call Entered, or TurnBack if it does not want to go on.
  bool EnterOrCall(std::function<void()> let_in) { return gate_.EnterStepOrCall(std::move(let_in)); }
  void Entered() { inside_ = true; }
  void TurnBack() { gate_.LeaveStep(); }

  // Counts one update that has ended. After the last update of the step, leaves the gate (but not if Begin got
  // `by_caller`: then the calling step leaves it).
  void UpdateDone() {
    if (updates_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) Leave();
  }
  // Begins the turn of an observed step (UpdateGate::BeginTurn). The turn counts as one more update that is under way,
  // so that the step does not leave the gate before EndTurn. Requires: inside(), and at least one update of the step
  // has not ended.
  void BeginTurn() COHORT_NO_THREAD_SAFETY_ANALYSIS {
    updates_left_.fetch_add(1, std::memory_order_acq_rel);
    gate_.BeginTurn();
  }
  // Ends the turn and gives `set` to the observer. Returns OK, or the error that the observer has thrown.
  Status EndTurn(UpdateSet set) COHORT_NO_THREAD_SAFETY_ANALYSIS {
    Status status;
    try {
      gate_.EndTurn(std::move(set));
    } catch (...) {
      status = Status::FromCurrentException();
    }
    UpdateDone();
    return status;
  }
  // Returns whether the update that is under way is the last one of the step. Requires: the step has the turn.
  bool in_last_update() const { return updates_left_.load(std::memory_order_acquire) == 2; }
  // Leaves the gate if the step is inside.
  void LeaveIfInside() {
    if (inside_) Leave();
  }

 private:
  void Leave() {
    if (!by_caller_) gate_.LeaveStep();
    inside_ = false;
  }

  UpdateGate& gate_;
  std::atomic<int32_t> updates_left_{0};
  std::atomic<bool> inside_{false};
  bool by_caller_ = false;
};

}  // namespace cohort
