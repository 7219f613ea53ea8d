// UpdateGate: lets a checkpoint see each step's updates of variables as a whole.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "cohort/core/mutex.h"

namespace cohort {

// The update sets of a task. A step that changes variables is inside the gate from its first update to its last; a
// checkpoint closes the gate while it takes references of all values, and so sees each step's updates as a whole.
// Thread-safe; a step may leave on another thread than it entered on.
class UpdateGate {
 public:
  // Waits while the gate is closed or somebody waits to close it.
  void EnterStep();
  // False where EnterStep would wait.
  bool TryEnterStep();
  // For a thread that must not wait, because the steps inside may need it: true when the step is inside now; otherwise
  // `entered` is kept and called once it is, on the thread that has opened the gate, outside the lock.
  bool EnterStepOrCall(std::function<void()> entered);
  void LeaveStep();
  // Waits until no step is inside. Throws DeadlineExceededError with the number of steps inside.
  void Close(std::chrono::milliseconds timeout);
  void Open();

 private:
  // Lets in whoever may enter now; the caller calls them after it has let go of the lock.
  std::vector<std::function<void()>> LetIn() COHORT_REQUIRES(mu_);

  Mutex mu_;
  CondVar changed_;
  std::vector<std::function<void()>> entering_ COHORT_GUARDED_BY(mu_);
  int inside_ COHORT_GUARDED_BY(mu_) = 0;
  int closing_ COHORT_GUARDED_BY(mu_) = 0;
  bool closed_ COHORT_GUARDED_BY(mu_) = false;
};

}  // namespace cohort
