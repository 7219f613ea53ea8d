// SessionWork: work for sessions that may wait and so must not run on network threads, such as preparing graphs and
// ending leases.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "cohort/core/mutex.h"
#include "cohort/core/thread_pool.h"

namespace cohort {

// Runs the closures of one session one after another, and those of different sessions at the same time. So a session
// that waits for its peers does not stop other sessions. The StepService owns it. Thread-safe. The destructor ends it.
class SessionWork {
 public:
  SessionWork();
  // Runs all closures that are queued, and then joins the threads.
  ~SessionWork() = default;

  // Adds a closure to the queue of a session. Does not wait. Requires: the closure does not throw.
  void Schedule(uint64_t session, std::function<void()> closure);

 private:
  void RunNext(uint64_t session);

  Mutex mu_;
  // The sessions that have work, each with the closures that have not started.
  std::map<uint64_t, std::deque<std::function<void()>>> queues_ COHORT_GUARDED_BY(mu_);
  ThreadPool threads_;  // destroyed first, so its closures can still use the other members
};

}  // namespace cohort
