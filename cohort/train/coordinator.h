// Coordinator: runs threads until one of them, or the program, asks all to stop. It follows TensorFlow's Coordinator.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/mutex.h"

namespace cohort::train {

// The program owns it. Thread-safe, except that only one thread may call Loop, Join and Reset. The destructor stops and
// joins the threads.
class COHORT_EXPORT Coordinator {
 public:
  Coordinator() = default;
  // Calls RequestStop and Join.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  bool should_stop() const COHORT_EXCLUDES(mu_);
  // Asks all threads to stop. Keeps the first error for exception(). An OutOfRangeError means a clean end and is not
  // kept.
  void RequestStop(std::exception_ptr error = nullptr) COHORT_EXCLUDES(mu_);
  // Waits until RequestStop or until `deadline`. Returns true if RequestStop was called.
  bool WaitForStop(std::chrono::steady_clock::time_point deadline) COHORT_EXCLUDES(mu_);
  // Returns the kept error, or null if there is none.
  std::exception_ptr exception() const COHORT_EXCLUDES(mu_);

  // Starts a thread that calls `work` at once and then every `interval_secs`, counted from the start, until the stop.
  // If a call takes longer than the interval, calls are skipped. If `work` throws, the thread calls RequestStop with
  // the error. `name` is the thread's name in debuggers.
  void Loop(const std::string& name, double interval_secs, std::function<void()> work) COHORT_EXCLUDES(mu_);
  // Waits until the threads of Loop have seen the stop and ended. Returns false if some still run after `grace_secs`.
  bool AwaitEnd(double grace_secs) COHORT_EXCLUDES(mu_);
  // Joins the threads, however long it takes.
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
