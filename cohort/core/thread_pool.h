// ThreadPool: a fixed number of threads that run closures.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/mutex.h"

namespace cohort {

// Runs closures on a fixed number of threads. Starts them in the order in which they were scheduled. After the
// destructor has begun, only closures that run on this pool may call Schedule. None of the pool's threads may destroy
// the pool.
class ThreadPool {
 public:
  // Starts the threads. Debuggers and `top` show `name`, cut to 15 characters.
  ThreadPool(const std::string& name, int num_threads);
  // Waits until all closures have run, also those that are still queued, and then joins the threads.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Adds a closure to the queue. Thread-safe; does not wait. Requires: the closure does not throw.
  void Schedule(std::function<void()> closure);
  // Returns whether the calling thread is one of this pool's threads. Thread-safe.
  bool IsOwnThread() const;

 private:
  void Loop();

  Mutex mu_;
  CondVar wake_;
  std::deque<std::function<void()>> queue_ COHORT_GUARDED_BY(mu_);
  bool stopping_ COHORT_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

// Sets the name of the calling thread, cut to 15 characters, for debuggers and `top`.
void SetThreadName(const std::string& name);

}  // namespace cohort
