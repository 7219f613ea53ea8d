// ThreadPool: a fixed number of threads that run closures in the order given.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/mutex.h"

namespace cohort {

class ThreadPool {
 public:
  // Names its threads `name` (cut to 15 characters) for debuggers and `top`.
  ThreadPool(const std::string& name, int num_threads);
  // Runs what is still queued, then joins.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Thread-safe, never blocks. A closure must not throw.
  void Schedule(std::function<void()> closure);
  // Whether the calling thread is one of this pool's.
  bool IsOwnThread() const;

 private:
  void Loop();

  Mutex mu_;
  CondVar wake_;
  std::deque<std::function<void()>> queue_ COHORT_GUARDED_BY(mu_);
  bool stopping_ COHORT_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

// Sets the calling thread's name as the system shows it (cut to 15 characters).
void SetThreadName(const std::string& name);

}  // namespace cohort
