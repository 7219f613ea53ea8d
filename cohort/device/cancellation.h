// CancellationManager: tells everything that waits within one step that the step has failed or was cancelled.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"

namespace cohort {

// Tells waiting code that its step has failed or was cancelled. The step owns it and uses it again for later steps.
// Thread-safe. Cancel calls each callback once, on the calling thread and without a lock.
class CancellationManager {
 public:
  using Token = uint64_t;
  static constexpr Token kAlreadyCancelled = 0;

  // Keeps `callback` until Deregister or Cancel. Returns kAlreadyCancelled, and does not keep `callback`, if Cancel was
  // called before.
  Token Register(std::function<void(const Status&)> callback);
  // Returns false if the callback has run or is running on another thread.
  bool Deregister(Token token);
  // Sets the status and calls the callbacks. Only the first call has an effect. An OK status becomes CancelledError.
  void Cancel(const Status& why);
  // Returns whether Cancel was called. It is cheap: executors call it before each kernel.
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  Status status() const;
  // Makes it ready for the next step. Throws InternalError if a callback is registered.
  void Reset();

 private:
  mutable Mutex mu_;
  std::map<Token, std::function<void(const Status&)>> callbacks_ COHORT_GUARDED_BY(mu_);
  Token next_ COHORT_GUARDED_BY(mu_) = 1;
  Status why_ COHORT_GUARDED_BY(mu_);
  std::atomic<bool> cancelled_{false};  // true if why_ is set
};

}  // namespace cohort
