#include "cohort/backends/test/test_stream.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cohort/core/thread_pool.h"

namespace cohort {
namespace {

thread_local bool in_callback = false;

void Call(const StreamEvent::Callback& callback) {
  const bool outer = std::exchange(in_callback, true);
  callback(Status());
  in_callback = outer;
}

}  // namespace

void CheckOutsideOfTestCallback(const char* call) {
  if (!in_callback) return;
  std::fprintf(stderr, "[test device] an event's callback called the device (%s); it has to use Device::RunOnHost\n",
               call);
  std::abort();
}

bool TestEvent::reached() const {
  MutexLock lock(mu_);
  return reached_;
}

Status TestEvent::Synchronize(std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(mu_);
  while (!reached_) {
    if (!changed_.WaitUntil(mu_, deadline) && !reached_) {
      return Status(Code::kDeadlineExceeded, "[test device] expected an event of a stream; the deadline came first");
    }
  }
  return {};
}

void TestEvent::OnReady(Callback callback) {
  {
    MutexLock lock(mu_);
    if (!reached_) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  Call(callback);
}

void TestEvent::Reach() {
  std::vector<Callback> callbacks;
  {
    MutexLock lock(mu_);
    reached_ = true;
    callbacks.swap(callbacks_);
    changed_.NotifyAll();
  }
  for (const Callback& callback : callbacks) Call(callback);
}

TestStream::TestStream(const std::string& name, const TestDelays& delays)
    : thread_([this, name, delays] {
        SetThreadName(name);
        Loop(delays);
      }) {}

TestStream::~TestStream() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

std::shared_ptr<StreamEvent> TestStream::Record() {
  auto event = std::make_shared<TestEvent>();
  Enqueue([event] { event->Reach(); });
  return event;
}

void TestStream::Wait(const std::shared_ptr<StreamEvent>& event) {
  // Ends: the stream of the event runs all that it has, even when it is destroyed.
  Enqueue([event] { (void)event->Synchronize(std::chrono::steady_clock::now() + std::chrono::hours(24)); });
}

void TestStream::Enqueue(std::function<void()> work) {
  CheckOutsideOfTestCallback("Enqueue");
  MutexLock lock(mu_);
  queue_.push_back(std::move(work));
  wake_.NotifyOne();
}

void TestStream::Loop(TestDelays delays) {
  std::mt19937_64 random(delays.seed);
  std::bernoulli_distribution delayed(delays.probability);
  std::uniform_int_distribution<int64_t> microseconds(0, delays.longest.count());
  std::deque<std::function<void()>> batch;
  for (;;) {
    {
      MutexLock lock(mu_);
      while (queue_.empty()) {
        if (stopping_) return;
        wake_.Wait(mu_);  // ends: the destructor notifies
      }
      batch.swap(queue_);
    }
    for (; !batch.empty(); batch.pop_front()) {
      if (delayed(random)) std::this_thread::sleep_for(std::chrono::microseconds(microseconds(random)));
      batch.front()();
    }
  }
}

}  // namespace cohort
