// CancellationManager: tells everything that waits within one step that the step has failed or was cancelled.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"

namespace cohort {

// Tells waiting code that its step has failed or was cancelled. The object that runs a step owns it, and resets it for
// a later step. All methods but Reset are thread-safe.
class CancellationManager {
 public:
  using Token = uint64_t;
  static constexpr Token kAlreadyCancelled = 0;

  // Keeps `callback` until Deregister or Cancel. If Cancel was called before, returns kAlreadyCancelled and never calls
  // `callback`.
  Token Register(std::function<void(const Status&)> callback);
  // Removes the callback. Returns false if it is too late: Cancel has called the callback, is calling it, or is about
  // to call it. Does not wait until the callback returns.
  bool Deregister(Token token);
  // Sets the status, and calls each registered callback once, on the calling thread and without a lock. Only the first
  // call in a step has an effect. If `why` is OK, the status is a CancelledError.
  void Cancel(const Status& why);
  // Returns whether Cancel was called. It is cheap: executors call it before each kernel.
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // Returns the status that Cancel has set, or OK.
  Status status() const;
  // Makes the manager ready for the next step. Throws InternalError if a callback is registered. Requires: nothing of
  // the last step uses the manager any more.
  void Reset();

 private:
  mutable Mutex mu_;
  std::map<Token, std::function<void(const Status&)>> callbacks_ COHORT_GUARDED_BY(mu_);
  Token next_ COHORT_GUARDED_BY(mu_) = 1;
  Status why_ COHORT_GUARDED_BY(mu_);
  std::atomic<bool> cancelled_{false};  // true if why_ is set
};

}  // namespace cohort
