// TestStream and TestEvent: the streams of the TEST device. Each stream is a thread that runs closures in their order.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/mutex.h"
#include "cohort/device/stream.h"

namespace cohort {

// How long a stream waits before a piece of work. The delays are drawn from `seed`, so a run can be repeated as far as
// the threads of the host allow.
struct TestDelays {
  uint64_t seed = 1;
  double probability = 0.02;               // that a piece of work is delayed
  std::chrono::microseconds longest{500};  // delays are uniform up to it
};

// Thread-safe.
class TestEvent final : public StreamEvent {
 public:
  bool reached() const override;
  Status Synchronize(std::chrono::steady_clock::time_point deadline) override;
  void OnReady(Callback callback) override;

  // Marks the event as reached and calls the callbacks. Called once, by the stream.
  void Reach();

 private:
  mutable Mutex mu_;
  CondVar changed_;
  bool reached_ COHORT_GUARDED_BY(mu_) = false;
  std::vector<Callback> callbacks_ COHORT_GUARDED_BY(mu_);
};

// Thread-safe.
class TestStream final : public Stream {
 public:
  // `name` is the thread's, for debuggers.
  TestStream(const std::string& name, const TestDelays& delays);
  // Runs what is still enqueued, then ends the thread.
  ~TestStream() override;
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;

  std::shared_ptr<StreamEvent> Record() override;
  void Wait(const std::shared_ptr<StreamEvent>& event) override;
  // Runs `work` behind all that was enqueued before. `work` must not throw, and must keep nothing that calls the
  // stream when it is destroyed. Ends the process with a message if it is called inside an event's callback, which
  // must not call the device.
  void Enqueue(std::function<void()> work);

 private:
  void Loop(TestDelays delays);

  Mutex mu_;
  CondVar wake_;
  std::deque<std::function<void()>> queue_ COHORT_GUARDED_BY(mu_);
  bool stopping_ COHORT_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

// Ends the process with a message if the calling thread is inside an event's callback. `call` is what it tried to do.
void CheckOutsideOfTestCallback(const char* call);

}  // namespace cohort
