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
  std::vector<std::shared_ptr<PendingArrivals>> pending;
  bool awaits_turn = false;
  bool explains = false;
  {
    MutexLock lock(mu_);
    for (const auto& [id, arrivals] : arrivals_) pending.push_back(arrivals);
    awaits_turn =
        std::any_of(calls_.begin(), calls_.end(), [](const auto& entry) { return entry.second->waits_for_turn(); });
    explains = explaining_ > 0;
  }
  Status why;
  for (const auto& arrivals : pending) {
    if (why.ok()) why = arrivals->WhyNever();
  }
  if (why.ok() && awaits_turn) why = host_.WhyGone(0);
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
    while (failed_.ok() && changed_.WaitUntil(mu_, until)) {
    }
    --explaining_;
  }
  host_.Fail(seen);
  return host_.status();
}

bool GlooEngine::NeedsFarewells() const {
  MutexLock lock(mu_);
  return running_ == 0 && calls_.empty();
}

void GlooEngine::OnPeerLeft(int process) {
  {
    MutexLock lock(mu_);
    if (running_ > 0) {
      left_.push_back(process);
      return;
    }
  }
  host_.SendFarewell(process);
}

void GlooEngine::Fail(const Status& why) {
  std::map<Key, std::shared_ptr<GlooCall>> calls;
  {
    MutexLock lock(mu_);
    if (!failed_.ok()) return;
    failed_ = why;
    calls = calls_;
    arrivals_.clear();
  }
  changed_.NotifyAll();
  for (const auto& lane : lanes_) lane->Stop();
  for (const auto& [key, call] : calls) call->Fail(why);  // a call that runs ends by itself soon: its mesh is broken
}

}  // namespace cohort::collective
