// UpdateGate: lets a checkpoint see each step's updates of variables as a whole, and gives them to an observer.
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

// Keeps checkpoints and update sets apart. There is one gate for each task. A step that changes variables is inside the
// gate from its first update to its last. A checkpoint closes the gate while it takes references to all values. So it
// sees all updates of a step or none. Thread-safe. A step may enter on one thread and leave on another.
class UpdateGate {
 public:
  // Enters. Waits while the gate is closed, or while another thread waits to close it.
  void EnterStep();
  // Enters and returns true, or returns false if EnterStep would wait.
  bool TryEnterStep();
  // Enters for a thread that must not wait, because the steps inside may need it. Returns true if the step is inside
  // now. Otherwise keeps `entered`. The thread that opens the gate calls it, without a lock, when the step is inside.
  bool EnterStepOrCall(std::function<void()> entered);
  void LeaveStep();
  // Waits until no step is inside, and closes the gate. Throws DeadlineExceededError, with the number of steps inside,
  // if this takes longer than `timeout`.
  void Close(std::chrono::milliseconds timeout);
  void Open();

  // Gives each set of updates that is applied from now on to `observer`; to nobody if it is null. Positions start at 1
  // again. Closes the gate meanwhile, so that a step is observed from its first update to its last or not at all.
  // Throws as Close.
  void SetObserver(std::shared_ptr<UpdateObserver> observer, std::chrono::milliseconds timeout);
  // Whether there is an observer. It stays so while the caller is inside.
  bool observed() const { return observed_.load(std::memory_order_acquire); }
  // The caller, a step inside an observed gate, is the only one that changes variables until EndTurn. Waits for the
  // turn of another step, which waits for nobody. The same thread ends the turn.
  void BeginTurn() COHORT_ACQUIRE(turn_) { turn_.Lock(); }
  // Gives the set to the observer, with its position, unless it has no updates. Throws what the observer throws; the
  // turn has ended all the same.
  void EndTurn(UpdateSet set) COHORT_RELEASE(turn_);

 private:
  // Lets all waiting steps in, if the gate allows it. Returns their functions, which the caller must call without the
  // lock.
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
