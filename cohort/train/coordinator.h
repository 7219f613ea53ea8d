// Coordinator: runs threads until one of them, or the program, asks all to stop. It follows TensorFlow's Coordinator.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/export.h"
#include "cohort/core/mutex.h"

namespace cohort::train {

// The program or its Supervisor owns it. Thread-safe, except that Loop, Join, Reset and the destructor must be called
// by one thread at a time.
class COHORT_EXPORT Coordinator {
 public:
  Coordinator() = default;
  // Calls RequestStop and Join, so it waits until all threads have ended.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  bool should_stop() const COHORT_EXCLUDES(mu_);
  // Asks all threads to stop. The first `error` that is not null is kept for exception(); but an OutOfRangeError means
  // a clean end and is not kept.
  void RequestStop(std::exception_ptr error = nullptr) COHORT_EXCLUDES(mu_);
  // Does the same with an error as a Status. Requires: `error` is not OK.
  void RequestStop(const Status& error) COHORT_EXCLUDES(mu_);
  // Waits until RequestStop or until `deadline`. Returns true if RequestStop was called.
  bool WaitForStop(std::chrono::steady_clock::time_point deadline) COHORT_EXCLUDES(mu_);
  // Returns the error that RequestStop has kept, or null if it has kept none.
  std::exception_ptr exception() const COHORT_EXCLUDES(mu_);

  // Starts a thread that calls `work` at once, even if a stop was requested before, and then at every multiple of
  // `interval` after the thread's start, until the stop. If a call takes longer than the interval, the multiples that
  // it misses are skipped. If `work` throws, the thread calls RequestStop with the error. `name` is the thread's name
  // in debuggers. An `interval` of std::chrono::milliseconds::max() means one call. Requires: `interval` is greater
  // than 0.
  void Loop(const std::string& name, std::chrono::milliseconds interval, std::function<void()> work)
      COHORT_EXCLUDES(mu_);
  // Waits until the threads of Loop have ended. Returns false if some still run after `grace`. Does not ask them to
  // stop.
  bool AwaitEnd(std::chrono::milliseconds grace) COHORT_EXCLUDES(mu_);
  // Waits until the threads of Loop have ended, and joins them. They end only after a RequestStop.
  void Join() COHORT_EXCLUDES(mu_);
  // Forgets the stop and the error, so that Loop can be used again. Requires: no thread runs.
  void Reset() COHORT_EXCLUDES(mu_);

 private:
  mutable Mutex mu_;
  CondVar changed_;
  bool stop_ COHORT_GUARDED_BY(mu_) = false;
  std::exception_ptr error_ COHORT_GUARDED_BY(mu_);
  int running_ COHORT_GUARDED_BY(mu_) = 0;
  std::vector<std::thread> threads_;
};

}  // namespace cohort::train
