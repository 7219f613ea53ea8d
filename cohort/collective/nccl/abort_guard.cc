#include "cohort/collective/nccl/abort_guard.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "cohort/collective/nccl/limits.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/thread_pool.h"

namespace cohort::collective {
namespace {

std::atomic<AbortGuard::EndProcess> end_of_process{nullptr};

void EndThisProcess(const std::string& why) {
  if (const auto end = end_of_process.load()) return end(why);
  LogError("collective", why);
  // No destructor may run: it would wait for the thread that hangs.
  std::_Exit(EXIT_FAILURE);
}

}  // namespace

void AbortGuard::ReplaceEndOfProcess(EndProcess end) { end_of_process.store(end); }

void AbortGuard::Start(int lanes) {
  {
    MutexLock lock(mu_);
    lanes_ = lanes;
  }
  thread_ = std::thread([this] { Loop(); });
}

void AbortGuard::Entered(int rank, Clock::duration limit) {
  MutexLock lock(mu_);
  const Call call{Clock::now() + limit, limit};
  calls_[rank] = call;
  if (call.until < wakes_) changed_.NotifyAll();
}

void AbortGuard::Left(int rank) {
  MutexLock lock(mu_);
  calls_.erase(rank);
}

void AbortGuard::Arm(const std::string& why) {
  MutexLock lock(mu_);
  if (armed_) return;
  armed_ = true;
  why_ = why;
  changed_.NotifyAll();
}

void AbortGuard::Ended() {
  MutexLock lock(mu_);
  --lanes_;
  changed_.NotifyAll();
}

void AbortGuard::Join() {
  if (thread_.joinable()) thread_.join();
}

int AbortGuard::AwaitStuck(Clock::duration* limit) {
  MutexLock lock(mu_);
  while (lanes_ > 0 && !armed_) {  // ends: the engine arms it before it is destroyed
    const auto first = std::min_element(calls_.begin(), calls_.end(),
                                        [](const auto& a, const auto& b) { return a.second.until < b.second.until; });
    wakes_ = first == calls_.end() ? Clock::time_point::max() : first->second.until;
    if (first == calls_.end()) {
      changed_.Wait(mu_);
    } else if (first->second.until <= Clock::now()) {
      const int rank = first->first;
      *limit = first->second.limit;
      calls_.erase(first);
      return rank;
    } else {
      const auto until = wakes_;
      changed_.WaitUntil(mu_, until);
    }
  }
  return -1;
}

void AbortGuard::Loop() {
  SetThreadName("cohort-nccl-end");
  Clock::duration limit{};
  for (int rank = AwaitStuck(&limit); rank >= 0; rank = AwaitStuck(&limit)) on_stuck_(rank, limit);
  std::string why;
  {
    MutexLock lock(mu_);
    const auto until = std::chrono::steady_clock::now() + kNcclAbortLimit;
    while (lanes_ > 0 && changed_.WaitUntil(mu_, until)) {
    }
    if (lanes_ == 0) return;
    why = why_;
  }
  EndThisProcess(
      StrCat("[collective] expected that NCCL's communicators are aborted within ", kNcclAbortLimit.count(),
             " s; they are not, and nothing else can stop them, so this process ends. The group had failed: ", why));
}

}  // namespace cohort::collective
