// CancellationManager: one for each step; when the step fails or is cancelled, what still waits is told why.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>

#include "cohort/core/error.h"
#include "cohort/core/mutex.h"

namespace cohort {

// Thread-safe. Callbacks run on the thread that cancels, outside the lock, each once.
class CancellationManager {
 public:
  using Token = uint64_t;
  static constexpr Token kAlreadyCancelled = 0;

  // kAlreadyCancelled, and `callback` is not kept, when Cancel() was called before.
  Token Register(std::function<void(const Status&)> callback);
  // False when the callback has run or is running on another thread.
  bool Deregister(Token token);
  // The first call wins; later ones do nothing.
  void Cancel(const Status& why);
  // Cheap: an executor asks between any two kernels.
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  Status status() const;
  // For the next step. No callback may be registered.
  void Reset();

 private:
  mutable Mutex mu_;
  std::map<Token, std::function<void(const Status&)>> callbacks_ COHORT_GUARDED_BY(mu_);
  Token next_ COHORT_GUARDED_BY(mu_) = 1;
  Status why_ COHORT_GUARDED_BY(mu_);
  std::atomic<bool> cancelled_{false};  // whether why_ is set
};

}  // namespace cohort
