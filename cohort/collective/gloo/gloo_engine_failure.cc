// How a GlooEngine ends: members that are gone, have left, or have failed, and the cause of what Gloo reports.
#include <algorithm>
#include <chrono>

#include "cohort/collective/gloo/gloo_engine.h"

namespace cohort::collective {
namespace {

// By the silence limit, the loss of a member is known after this time.
constexpr std::chrono::seconds kCauseLimit{5};

}  // namespace

void GlooEngine::OnPeerGone() {
  order_.OnPeerGone();
  bool explains = false;
  {
    MutexLock lock(mu_);
    explains = explaining_ > 0;
  }
  Status why;
  for (int rank = 0; explains && why.ok() && rank < host_.members().size(); ++rank) why = host_.WhyGone(rank);
  if (!why.ok()) host_.Fail(why);
}

Status GlooEngine::Explain(const Status& seen) {
  // A peer that ends closes Gloo's connections and the group's. A peer that fails sends the reason. Either may come
  // first.
  if (seen.code() == Code::kUnavailable) {
    {
      MutexLock lock(mu_);
      ++explaining_;
    }
    OnPeerGone();
    const auto until = std::chrono::steady_clock::now() + kCauseLimit;
    MutexLock lock(mu_);
    while (!failed_ && changed_.WaitUntil(mu_, until)) {
    }
    --explaining_;
  }
  host_.Fail(seen);
  return host_.status();
}

void GlooEngine::Fail(const Status& why) {
  if (!order_.SetFailed(why)) return;
  {
    MutexLock lock(mu_);
    failed_ = true;
  }
  changed_.NotifyAll();
  for (const auto& lane : lanes_) lane->Stop();
  order_.EndCalls();  // a call that runs ends by itself soon: its mesh is broken
}

}  // namespace cohort::collective
