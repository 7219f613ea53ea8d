#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/variable.h"

namespace cohort {

void UpdateGate::EnterStep() {
  MutexLock lock(mu_);
  while (closed_ || closing_ > 0) changed_.Wait(mu_);  // ends: whoever closes the gate has a deadline
  ++inside_;
}

void UpdateGate::LeaveStep() {
  {
    MutexLock lock(mu_);
    --inside_;
  }
  changed_.NotifyAll();
}

void UpdateGate::Close(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mu_);
  ++closing_;
  while (closed_ || inside_ > 0) {
    if (!changed_.WaitUntil(mu_, deadline) && (closed_ || inside_ > 0)) {
      --closing_;
      changed_.NotifyAll();
      throw DeadlineExceededError(StrCat("[state] no cut between update sets within ", timeout.count(),
                                         " ms: ", inside_, " steps are in the middle of their updates"));
    }
  }
  --closing_;
  closed_ = true;
}

void UpdateGate::Open() {
  {
    MutexLock lock(mu_);
    closed_ = false;
  }
  changed_.NotifyAll();
}

}  // namespace cohort
