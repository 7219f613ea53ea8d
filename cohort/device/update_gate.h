// UpdateGate: lets a checkpoint see each step's updates of variables as a whole.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "cohort/core/mutex.h"

namespace cohort {

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
};

}  // namespace cohort
