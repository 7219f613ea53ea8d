// Locks with clang's thread-safety annotations. They wrap std::mutex, std::shared_mutex and std::condition_variable.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#include "cohort/core/export.h"

#if defined(__clang__)
#define COHORT_TSA(x) __attribute__((x))
#else
#define COHORT_TSA(x)
#endif
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COHORT_WAITS_BY_SYSTEM_CLOCK  // see CondVar::WaitUntil
#endif
#endif
#define COHORT_CAPABILITY(x) COHORT_TSA(capability(x))
#define COHORT_SCOPED_CAPABILITY COHORT_TSA(scoped_lockable)
#define COHORT_GUARDED_BY(x) COHORT_TSA(guarded_by(x))
#define COHORT_PT_GUARDED_BY(x) COHORT_TSA(pt_guarded_by(x))
#define COHORT_REQUIRES(...) COHORT_TSA(requires_capability(__VA_ARGS__))
#define COHORT_REQUIRES_SHARED(...) COHORT_TSA(requires_shared_capability(__VA_ARGS__))
#define COHORT_ACQUIRE(...) COHORT_TSA(acquire_capability(__VA_ARGS__))
#define COHORT_ACQUIRE_SHARED(...) COHORT_TSA(acquire_shared_capability(__VA_ARGS__))
#define COHORT_RELEASE(...) COHORT_TSA(release_capability(__VA_ARGS__))
#define COHORT_RELEASE_SHARED(...) COHORT_TSA(release_shared_capability(__VA_ARGS__))
#define COHORT_RELEASE_GENERIC(...) COHORT_TSA(release_generic_capability(__VA_ARGS__))
#define COHORT_TRY_ACQUIRE(...) COHORT_TSA(try_acquire_capability(__VA_ARGS__))
#define COHORT_EXCLUDES(...) COHORT_TSA(locks_excluded(__VA_ARGS__))
#define COHORT_NO_THREAD_SAFETY_ANALYSIS COHORT_TSA(no_thread_safety_analysis)

namespace cohort {

// A lock that one thread holds at a time. Use MutexLock to hold it.
class COHORT_CAPABILITY("mutex") COHORT_EXPORT Mutex {
 public:
  void Lock() COHORT_ACQUIRE() { mu_.lock(); }
  void Unlock() COHORT_RELEASE() { mu_.unlock(); }
  bool TryLock() COHORT_TRY_ACQUIRE(true) { return mu_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

// Locks the Mutex, and unlocks it in its destructor. For a SharedMutex, WriterLock does this for the one writer, and
// ReaderLock for one of the readers.
class COHORT_SCOPED_CAPABILITY COHORT_EXPORT MutexLock {
 public:
  explicit MutexLock(Mutex& mu) COHORT_ACQUIRE(mu) : mu_(mu) { mu_.Lock(); }
  ~MutexLock() COHORT_RELEASE() { mu_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

// A condition variable for Mutex. All waits may end without a notification, so call them in a loop that tests the
// condition. Wait has no time limit. So use Wait only if some thread notifies in both cases: when the condition becomes
// true, and when it can never become true any more.
class COHORT_EXPORT CondVar {
 public:
  void Wait(Mutex& mu) COHORT_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // Waits like Wait, but at most until `deadline`. Returns false if `deadline` has passed, else true. WaitFor does the
  // same with a duration.
  bool WaitUntil(Mutex& mu, std::chrono::steady_clock::time_point deadline) COHORT_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
#ifdef COHORT_WAITS_BY_SYSTEM_CLOCK
    // ThreadSanitizer of clang 14 does not know pthread_cond_clockwait, which waits by the steady clock.
    const auto left = deadline - std::chrono::steady_clock::now();
    cv_.wait_until(
        lock, std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::system_clock::duration>(left));
    const bool in_time = std::chrono::steady_clock::now() < deadline;
#else
    const bool in_time = cv_.wait_until(lock, deadline) == std::cv_status::no_timeout;
#endif
    lock.release();
    return in_time;
  }
  bool WaitFor(Mutex& mu, std::chrono::nanoseconds timeout) COHORT_REQUIRES(mu) {
    return WaitUntil(mu, std::chrono::steady_clock::now() + timeout);
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

// A lock that either one writer holds, or any number of readers at the same time.
class COHORT_CAPABILITY("shared mutex") COHORT_EXPORT SharedMutex {
 public:
  void Lock() COHORT_ACQUIRE() { mu_.lock(); }
  void Unlock() COHORT_RELEASE() { mu_.unlock(); }
  void LockShared() COHORT_ACQUIRE_SHARED() { mu_.lock_shared(); }
  void UnlockShared() COHORT_RELEASE_SHARED() { mu_.unlock_shared(); }

 private:
  std::shared_mutex mu_;
};

class COHORT_SCOPED_CAPABILITY COHORT_EXPORT WriterLock {
 public:
  explicit WriterLock(SharedMutex& mu) COHORT_ACQUIRE(mu) : mu_(mu) { mu_.Lock(); }
  ~WriterLock() COHORT_RELEASE() { mu_.Unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mu_;
};

class COHORT_SCOPED_CAPABILITY COHORT_EXPORT ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mu) COHORT_ACQUIRE_SHARED(mu) : mu_(mu) { mu_.LockShared(); }
  ~ReaderLock() COHORT_RELEASE_GENERIC() { mu_.UnlockShared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mu_;
};

}  // namespace cohort
