#include "cohort/collective/nccl/abort_guard.h"

#include <atomic>
#include <cstdlib>

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

void AbortGuard::Loop() {
  SetThreadName("cohort-nccl-end");
  std::string why;
  {
    MutexLock lock(mu_);
    while (lanes_ > 0 && !armed_) changed_.Wait(mu_);  // ends: the engine arms it before it is destroyed
    const auto until = std::chrono::steady_clock::now() + kLimit;
    while (lanes_ > 0 && changed_.WaitUntil(mu_, until)) {
    }
    if (lanes_ == 0) return;
    why = why_;
  }
  EndThisProcess(
      StrCat("[collective] expected that NCCL's communicators are aborted within ", kLimit.count(),
             " s; they are not, and nothing else can stop them, so this process ends. The group had failed: ", why));
}

}  // namespace cohort::collective
