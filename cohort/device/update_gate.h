// UpdateGate: lets a checkpoint see each step's updates of variables as a whole, and gives the updates to an observer.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "cohort/core/mutex.h"

namespace cohort {

class UpdateObserver;
struct UpdateSet;

// Keeps checkpoints and update sets apart. There is one gate for each task; TaskResources owns it. A step that changes
// variables is inside the gate from its first update to its last. A checkpoint closes the gate while it takes
// references to all values. So the checkpoint sees all updates of a step or none. Thread-safe. A step may enter on one
// thread and leave on another.
class UpdateGate {
 public:
  // Enters: the step is inside until LeaveStep. Waits while the gate is closed, or while another thread waits to close
  // it.
  void EnterStep();
  // Enters and returns true, or returns false if EnterStep would wait.
  bool TryEnterStep();
  // Enters without a wait. It is for a thread that must not wait, because a step inside the gate may need this thread
  // to go on. Returns true if the step is inside now; then `entered` is never called. Otherwise returns false and keeps
  // `entered`. As soon as the gate has let the step in, `entered` is called once, without a lock: on the thread that
  // opens the gate, or on a thread whose Close has failed.
  bool EnterStepOrCall(std::function<void()> entered);
  // Leaves. Requires: the step is inside.
  void LeaveStep();
  // Waits until no step is inside and the gate is open, and closes it. The gate then stays closed until Open. Throws
  // DeadlineExceededError, with the number of steps inside, if this takes longer than `timeout`; then this call has not
  // closed the gate.
  void Close(std::chrono::milliseconds timeout);
  // Opens the gate, which the caller has closed, and lets in the steps that wait. Open may be called on a thread other
  // than that of Close.
  void Open();

  // From now on gives `observer` each update set that a step of the task applies. If `observer` is null, nobody gets
  // the sets. The positions of the sets start at 1 again. Closes the gate for the change, so that a step is observed
  // from its first update to its last or not at all. Throws as Close does.
  void SetObserver(std::shared_ptr<UpdateObserver> observer, std::chrono::milliseconds timeout);
  // Returns whether there is an observer. The answer cannot change while the caller's step is inside.
  bool observed() const { return observed_.load(std::memory_order_acquire); }
  // Begins the turn of a step: until EndTurn it is the only step of the task that changes variables. If another step
  // has the turn, waits until that turn has ended. This wait always ends, because a step with the turn waits for no
  // other step. The thread that begins the turn must end it. Requires: the step is inside, and observed().
  void BeginTurn() COHORT_ACQUIRE(turn_) { turn_.Lock(); }
  // If `set` has updates, sets its position and gives it to the observer. Then ends the turn. Throws what the observer
  // throws; the turn has ended then too.
  void EndTurn(UpdateSet set) COHORT_RELEASE(turn_);

 private:
  // If the gate is open and nobody waits to close it, lets in all steps whose `entered` is kept. Returns these
  // functions, which the caller must call without the lock.
  std::vector<std::function<void()>> LetIn() COHORT_REQUIRES(mu_);

  Mutex mu_;
  CondVar changed_;
  std::vector<std::function<void()>> entering_ COHORT_GUARDED_BY(mu_);
  int inside_ COHORT_GUARDED_BY(mu_) = 0;
  int closing_ COHORT_GUARDED_BY(mu_) = 0;
  bool closed_ COHORT_GUARDED_BY(mu_) = false;

  std::atomic<bool> observed_{false};
  Mutex turn_;
  std::shared_ptr<UpdateObserver> observer_ COHORT_GUARDED_BY(turn_);
  int64_t sets_given_ COHORT_GUARDED_BY(turn_) = 0;
};

}  // namespace cohort
