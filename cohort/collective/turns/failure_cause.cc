#include "cohort/collective/turns/failure_cause.h"

namespace cohort::collective {

void FailureCause::Await(const Status& seen) {
  if (seen.code() != Code::kUnavailable) return;
  {
    MutexLock lock(mu_);
    ++waiting_;
  }
  OnPeerGone();  // the member may have gone before
  const auto until = std::chrono::steady_clock::now() + limit_;
  MutexLock lock(mu_);
  while (!failed_ && changed_.WaitUntil(mu_, until)) {
  }
  --waiting_;
}

void FailureCause::OnPeerGone() {
  {
    MutexLock lock(mu_);
    if (waiting_ == 0) return;
  }
  Status why;
  for (int rank = 0; why.ok() && rank < host_.members().size(); ++rank) why = host_.WhyGone(rank);
  if (!why.ok()) host_.Fail(why);
}

void FailureCause::OnFailed() {
  {
    MutexLock lock(mu_);
    failed_ = true;
  }
  changed_.NotifyAll();
}

}  // namespace cohort::collective
