#include "cohort/device/update_gate.h"

#include <utility>

#include "cohort/core/deadline.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/update_observer.h"

namespace cohort {

void UpdateGate::EnterStep() {
  MutexLock lock(mu_);
  while (closed_ || closing_ > 0) changed_.Wait(mu_);  // ends: whoever closes the gate has a deadline
  ++inside_;
}

bool UpdateGate::TryEnterStep() {
  MutexLock lock(mu_);
  if (closed_ || closing_ > 0) return false;
  ++inside_;
  return true;
}

bool UpdateGate::EnterStepOrCall(std::function<void()> entered) {
  MutexLock lock(mu_);
  if (closed_ || closing_ > 0) {
    entering_.push_back(std::move(entered));
    return false;
  }
  ++inside_;
  return true;
}

std::vector<std::function<void()>> UpdateGate::LetIn() {
  if (closed_ || closing_ > 0) return {};
  inside_ += static_cast<int>(entering_.size());
  return std::exchange(entering_, {});
}

void UpdateGate::LeaveStep() {
  {
    MutexLock lock(mu_);
    --inside_;
  }
  changed_.NotifyAll();
}

void UpdateGate::Close(std::chrono::milliseconds timeout) {
  const auto deadline = DeadlineAfter(timeout);
  int left;
  std::vector<std::function<void()>> entered;
  {
    MutexLock lock(mu_);
    ++closing_;
    bool in_time = true;
    while ((closed_ || inside_ > 0) && in_time) in_time = changed_.WaitUntil(mu_, deadline);
    --closing_;
    left = inside_;
    if (!closed_ && inside_ == 0) {
      closed_ = true;
      return;
    }
    entered = LetIn();
  }
  changed_.NotifyAll();
  for (const auto& call : entered) call();
  throw DeadlineExceededError(StrCat("[state] no cut between update sets within ", timeout.count(), " ms: ", left,
                                     " steps are in the middle of their updates"));
}

void UpdateGate::Open() {
  std::vector<std::function<void()>> entered;
  {
    MutexLock lock(mu_);
    closed_ = false;
    entered = LetIn();
  }
  changed_.NotifyAll();
  for (const auto& call : entered) call();
}

void UpdateGate::SetObserver(std::shared_ptr<UpdateObserver> observer, std::chrono::milliseconds timeout) {
  Close(timeout);
  {
    MutexLock lock(turn_);
    observed_.store(observer != nullptr, std::memory_order_release);
    observer_.swap(observer);
    sets_given_ = 0;
  }
  Open();
}

void UpdateGate::EndTurn(UpdateSet set) COHORT_NO_THREAD_SAFETY_ANALYSIS {
  try {
    if (!set.updates.empty()) {
      set.position = ++sets_given_;
      observer_->OnUpdates(std::move(set));
    }
  } catch (...) {
    turn_.Unlock();
    throw;
  }
  turn_.Unlock();
}

}  // namespace cohort
