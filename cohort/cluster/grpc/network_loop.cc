#include "cohort/cluster/grpc/network_loop.h"

#include <algorithm>

#include "cohort/core/thread_pool.h"

namespace cohort {
namespace {

// A thread whose completion takes longer counts as held up.
constexpr std::chrono::milliseconds kLong{100};
constexpr std::chrono::milliseconds kLookAround{20};
constexpr size_t kMostRelief = 3;

// Longer than the message of a small step usually takes.
constexpr std::chrono::microseconds kSpin{60};
// A yield that takes this long shows that another thread does real work.
constexpr std::chrono::microseconds kYieldedToSomebody{200};

// Few threads, because several threads cost wake-ups. One thread if there are few cores.
int ThreadsForTheCores() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 4, 1, 4); }

}  // namespace

NetworkLoop::NetworkLoop(std::unique_ptr<grpc::ServerCompletionQueue> queue, int threads) : queue_(std::move(queue)) {
  if (threads <= 0) threads = ThreadsForTheCores();
  for (int i = 0; i < threads; ++i) workers_.push_back(std::make_unique<Worker>());
  for (const auto& worker : workers_) Start(*worker, false);
}

bool NetworkLoop::Worker::HeldUp() const {
  const Clock::rep since = busy_since.load(std::memory_order_relaxed);
  return since != 0 && Clock::now() - Clock::time_point(Clock::duration(since)) > kLong;
}

void NetworkLoop::Start(Worker& worker, bool relief) {
  worker.thread = std::thread([this, &worker, relief] {
    SetThreadName("cohort-net");
    relief ? RunAsRelief(worker) : Run(worker);
    worker.ended = true;
  });
}

void NetworkLoop::Worker::Serve(void* tag, bool ok) {
  busy_since.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  Completion::Complete(tag, ok);
  busy_since.store(0, std::memory_order_relaxed);
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
  while (Next(policy, &tag, &ok)) worker.Serve(tag, ok);
}

void NetworkLoop::RunAsRelief(Worker& worker) {
  void* tag = nullptr;
  bool ok = false;
  while (AllHeldUp()) {
    const auto next = queue_->AsyncNext(&tag, &ok, std::chrono::system_clock::now() + kLookAround);
    if (next == grpc::CompletionQueue::SHUTDOWN) return;
    if (next == grpc::CompletionQueue::GOT_EVENT) worker.Serve(tag, ok);
  }
}

bool NetworkLoop::AllHeldUp() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->HeldUp(); });
}

bool NetworkLoop::AddThreadIfAllBusy() {
  std::erase_if(relief_, [](const auto& worker) {
    if (!worker->ended) return false;
    worker->thread.join();
    return true;
  });
  if (!AllHeldUp()) return false;
  for (const auto& worker : relief_) {
    if (!worker->HeldUp()) return false;
  }
  if (relief_.size() == kMostRelief) return true;
  relief_.push_back(std::make_unique<Worker>());
  Start(*relief_.back(), true);
  return false;
}

void NetworkLoop::Stop() {
  if (stopped_) return;
  stopped_ = true;
  queue_->Shutdown();
  for (const auto& worker : workers_) worker->thread.join();
  for (const auto& worker : relief_) worker->thread.join();
}

}  // namespace cohort
