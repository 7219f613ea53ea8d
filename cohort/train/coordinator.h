// Coordinator: threads that work until one of them, or the program, asks all to stop. After TensorFlow's
// Coordinator.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/mutex.h"

namespace cohort::train {

// Thread-safe, except that only one thread starts and joins.
class Coordinator {
 public:
  Coordinator() = default;
  // Stops and joins.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  bool should_stop() const COHORT_EXCLUDES(mu_);
  // Asks all threads to stop. The first error given is kept for exception(); an OutOfRangeError is a clean
  // end and counts as none.
  void RequestStop(std::exception_ptr error = nullptr) COHORT_EXCLUDES(mu_);
  // Waits until RequestStop or `deadline`; true for the first.
  bool WaitForStop(std::chrono::steady_clock::time_point deadline) COHORT_EXCLUDES(mu_);
  // Null where none was given.
  std::exception_ptr exception() const COHORT_EXCLUDES(mu_);

  // Calls `work` at once and then every `interval`, counted from the start (a call that takes longer skips turns), on a
  // thread of its own until the stop. What it throws is a RequestStop. `name` is for debuggers. Requires: the interval
  // is longer than 0.
  void Loop(const std::string& name, std::chrono::milliseconds interval, std::function<void()> work)
      COHORT_EXCLUDES(mu_);
  // Waits for the threads of Loop to see the stop and end. Returns false if some still run after `grace`.
  bool AwaitEnd(std::chrono::milliseconds grace) COHORT_EXCLUDES(mu_);
  // Joins them, however long it takes.
  void Join() COHORT_EXCLUDES(mu_);
  // For the next round, when no thread runs.
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
