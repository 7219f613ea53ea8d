#include "cohort/device/cancellation.h"

#include <utility>

namespace cohort {

CancellationManager::Token CancellationManager::Register(std::function<void(const Status&)> callback) {
  MutexLock lock(mu_);
  if (!why_.ok()) return kAlreadyCancelled;
  const Token token = next_++;
  callbacks_.emplace(token, std::move(callback));
  return token;
}

bool CancellationManager::Deregister(Token token) {
  MutexLock lock(mu_);
  return callbacks_.erase(token) > 0;
}

void CancellationManager::Cancel(const Status& why) {
  std::map<Token, std::function<void(const Status&)>> callbacks;
  Status reason;
  {
    MutexLock lock(mu_);
    if (!why_.ok()) return;
    why_ = why.ok() ? Status(Code::kCancelled, "[cancellation] the step was cancelled") : why;
    cancelled_.store(true, std::memory_order_release);
    reason = why_;
    callbacks.swap(callbacks_);
  }
  for (const auto& [token, callback] : callbacks) callback(reason);
}

Status CancellationManager::status() const {
  MutexLock lock(mu_);
  return why_;
}

void CancellationManager::Reset() {
  MutexLock lock(mu_);
  if (!callbacks_.empty()) {
    throw InternalError("[cancellation] expected no registered callback at a reset; got " +
                        std::to_string(callbacks_.size()) + " of the last step");
  }
  why_ = Status();
  cancelled_.store(false, std::memory_order_release);
}

}  // namespace cohort
