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

// The random delays of a stream before its pieces of work. They are drawn from `seed`. So a run can be repeated, except
// for the scheduling of the host's threads.
struct TestDelays {
  uint64_t seed = 1;
  double probability = 0.02;               // that there is a delay before a piece of work
  std::chrono::microseconds longest{500};  // delays are uniformly distributed from 0 to this value
};

// A point in a TestStream. The stream and everybody who waits for the event share ownership. Thread-safe.
class TestEvent final : public StreamEvent {
 public:
  bool reached() const override;
  Status Synchronize(std::chrono::steady_clock::time_point deadline) override;
  // Calls `callback` on the stream's thread, or on this thread if the event is already reached.
  void OnReady(Callback callback) override;

  // Marks the event as reached and calls the callbacks that wait for it. The stream calls Reach once, on its thread.
  void Reach();

 private:
  mutable Mutex mu_;
  CondVar changed_;
  bool reached_ COHORT_GUARDED_BY(mu_) = false;
  std::vector<Callback> callbacks_ COHORT_GUARDED_BY(mu_);
};

// One stream. The device owns it. Thread-safe.
class TestStream final : public Stream {
 public:
  // `name` is the thread's name in debuggers.
  TestStream(const std::string& name, const TestDelays& delays);
  // Runs the work that is still enqueued, then ends the thread.
  ~TestStream() override;
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;

  std::shared_ptr<StreamEvent> Record() override;
  void Wait(const std::shared_ptr<StreamEvent>& event) override;
  // Runs `work` on the stream's thread, after all work that was enqueued before. `work` must not throw, and must not
  // own an object whose destructor calls the stream. A callback of an event must not call Enqueue, Record or Wait: that
  // ends the process with a message.
  void Enqueue(std::function<void()> work);

 private:
  void Loop(TestDelays delays);

  Mutex mu_;
  CondVar wake_;
  std::deque<std::function<void()>> queue_ COHORT_GUARDED_BY(mu_);
  bool stopping_ COHORT_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

// Ends the process with a message if the calling thread is inside an event's callback. `call` describes the forbidden
// call.
void CheckOutsideOfTestCallback(const char* call);

}  // namespace cohort
