#include "cohort/cluster/steps/session_work.h"

#include "cohort/core/error.h"
#include "cohort/core/logging.h"

namespace cohort {
namespace {

// They mostly wait: for peers, for kernels that end.
constexpr int kThreads = 4;

}  // namespace

SessionWork::SessionWork() : threads_("cohort-clerk", kThreads) {}

void SessionWork::Schedule(uint64_t session, std::function<void()> closure) {
  MutexLock lock(mu_);
  const auto [queue, idle] = queues_.try_emplace(session);
  queue->second.push_back(std::move(closure));
  if (idle) threads_.Schedule([this, session] { RunNext(session); });
}

void SessionWork::RunNext(uint64_t session) {
  for (;;) {
    std::function<void()> closure;
    {
      MutexLock lock(mu_);
      const auto queue = queues_.find(session);
      if (queue->second.empty()) {
        queues_.erase(queue);
        return;
      }
      closure = std::move(queue->second.front());
      queue->second.pop_front();
    }
    try {
      closure();
    } catch (...) {
      LogError("cluster", "work for session ", session, " failed: ", Status::FromCurrentException().ToString());
    }
  }
}

}  // namespace cohort
