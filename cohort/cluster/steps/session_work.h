// SessionWork: what a node does for sessions apart from its network threads - preparing graphs, ending leases.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "cohort/core/mutex.h"
#include "cohort/core/thread_pool.h"

namespace cohort {

// Runs the closures of one session in order and those of different sessions beside each other, so that a session whose
// peers are stuck holds up nobody else. Thread-safe.
class SessionWork {
 public:
  SessionWork();
  // Runs what is still queued, then joins.
  ~SessionWork() = default;

  // Never blocks. A closure must not throw.
  void Schedule(uint64_t session, std::function<void()> closure);

 private:
  void RunNext(uint64_t session);

  Mutex mu_;
  // Sessions that a thread is at work for, or will be, and what comes after that.
  std::map<uint64_t, std::deque<std::function<void()>>> queues_ COHORT_GUARDED_BY(mu_);
  ThreadPool threads_;  // ends first
};

}  // namespace cohort
