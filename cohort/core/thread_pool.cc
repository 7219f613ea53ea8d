#include "cohort/core/thread_pool.h"

#include <pthread.h>

namespace cohort {

void SetThreadName(const std::string& name) { pthread_setname_np(pthread_self(), name.substr(0, 15).c_str()); }

ThreadPool::ThreadPool(const std::string& name, int num_threads) {
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this, name] {
      SetThreadName(name);
      Loop();
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Schedule(std::function<void()> closure) {
  // The lock is held until a thread is notified: the closure may end the owner of this pool, and so the pool.
  MutexLock lock(mu_);
  queue_.push_back(std::move(closure));
  wake_.NotifyOne();
}

bool ThreadPool::IsOwnThread() const {
  for (const std::thread& thread : threads_) {
    if (thread.get_id() == std::this_thread::get_id()) return true;
  }
  return false;
}

void ThreadPool::Loop() {
  for (;;) {
    std::function<void()> closure;
    {
      MutexLock lock(mu_);
      while (queue_.empty() && !stopping_) wake_.Wait(mu_);
      if (queue_.empty()) return;
      closure = std::move(queue_.front());
      queue_.pop_front();
    }
    closure();
  }
}

}  // namespace cohort
