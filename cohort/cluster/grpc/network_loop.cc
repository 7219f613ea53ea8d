#include "cohort/cluster/grpc/network_loop.h"

#include <algorithm>

#include "cohort/core/thread_pool.h"

namespace cohort {
namespace {

// A completion that takes longer holds the thread up.
constexpr std::chrono::milliseconds kLong{100};

// Longer than a small step's message takes to come.
constexpr std::chrono::microseconds kSpin{60};
// A yield takes so long when another thread works, not just passes something on.
constexpr std::chrono::microseconds kYieldedToSomebody{200};

// More threads than one cost wake-ups, so there are few, and one where cores are few.
size_t ThreadCount() { return std::clamp<size_t>(std::thread::hardware_concurrency() / 4, 1, 4); }

}  // namespace

NetworkLoop::NetworkLoop(std::unique_ptr<grpc::ServerCompletionQueue> queue) : queue_(std::move(queue)) {
  for (size_t i = 0; i < ThreadCount(); ++i) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->thread = std::thread([this, worker = workers_.back().get()] {
      SetThreadName("cohort-net");
      Run(*worker);
    });
  }
}

bool NetworkLoop::Next(SpinPolicy& policy, void** tag, bool* ok) {
  if (!policy.ShouldSpin()) return queue_->Next(tag, ok);
  using State = grpc::CompletionQueue::NextStatus;
  const gpr_timespec at_once = gpr_time_0(GPR_CLOCK_MONOTONIC);
  const Clock::time_point start = Clock::now();
  for (Clock::time_point now = start; now - start < kSpin;) {
    const State state = queue_->AsyncNext(tag, ok, at_once);
    if (state == State::SHUTDOWN) return false;
    if (state == State::GOT_EVENT) {
      policy.Hit();
      return true;
    }
    const Clock::time_point before = Clock::now();
    std::this_thread::yield();
    now = Clock::now();
    if (now - before > kYieldedToSomebody) {
      policy.Crowded();
      return queue_->Next(tag, ok);
    }
  }
  policy.Miss();
  return queue_->Next(tag, ok);
}

void NetworkLoop::Run(Worker& worker) {
  void* tag = nullptr;
  bool ok = false;
  SpinPolicy policy;
  while (Next(policy, &tag, &ok)) {
    const Clock::time_point start = Clock::now();
    worker.busy_since.store(start.time_since_epoch().count(), std::memory_order_relaxed);
    static_cast<Completion*>(tag)->Complete(ok);
    const Clock::time_point end = Clock::now();
    if (end - start > kLong) held_up_until_.store(end.time_since_epoch().count(), std::memory_order_relaxed);
    worker.busy_since.store(0, std::memory_order_relaxed);
  }
}

NetworkLoop::Clock::time_point NetworkLoop::listening_since() const {
  const Clock::time_point now = Clock::now();
  for (const auto& worker : workers_) {
    const Clock::rep since = worker->busy_since.load(std::memory_order_relaxed);
    if (since != 0 && now - Clock::time_point(Clock::duration(since)) > kLong) return now;
  }
  return Clock::time_point(Clock::duration(held_up_until_.load(std::memory_order_relaxed)));
}

void NetworkLoop::Stop() {
  if (stopped_) return;
  stopped_ = true;
  queue_->Shutdown();
  for (const auto& worker : workers_) {
    worker->thread.join();
  }
}

}  // namespace cohort
