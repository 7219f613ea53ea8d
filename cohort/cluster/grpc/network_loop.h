// NetworkLoop: the completion queue of one transport and the threads that serve it. All streams of the transport share
// the queue. gRPC wakes any one polling thread of the process. With several queues it would often wake a thread that
// must then wake the right one, and each message would cost a second wake-up.
#pragma once

#include <grpcpp/server_builder.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "cohort/cluster/grpc/spin_policy.h"

namespace cohort {

// The end of an operation. Whoever starts one stays alive until then.
class Completion {
 public:
  virtual ~Completion() = default;
  // On a thread of the loop. `ok`: whether the operation did what it should.
  virtual void Complete(bool ok) = 0;

  // The tag of an operation that starts now. What the starting thread has written is there for the one that completes:
  // gRPC sees to that, but where ThreadSanitizer cannot see it.
  void* Starts() {
    started_.store(true, std::memory_order_release);
    return this;
  }
  static void Complete(void* tag, bool ok) {
    auto* const completion = static_cast<Completion*>(tag);
    if (completion->started_.load(std::memory_order_acquire)) completion->Complete(ok);
  }

 private:
  std::atomic<bool> started_{false};
};

class NetworkLoop {
 public:
  // `queue` may serve a server; tags in it are Completions. `threads`: 0 for as many as suit the cores.
  NetworkLoop(std::unique_ptr<grpc::ServerCompletionQueue> queue, int threads);
  // Stops.
  ~NetworkLoop() { Stop(); }

  grpc::ServerCompletionQueue* queue() const { return queue_.get(); }
  // Requires: no operation will be started and AddThreadIfAllBusy will not be called any more. Waits until all
  // operations have completed, and joins the threads.
  void Stop();
  // Call this regularly, always from the same thread. If all threads have been busy in handlers for over 100 ms, starts
  // an extra thread (at most 3) until one of them is free, so that heartbeats leave and arrive. Returns true if all
  // extra threads are busy too: then this side reads nothing.
  bool AddThreadIfAllBusy();

 private:
  using Clock = std::chrono::steady_clock;
  struct Worker {
    void Serve(void* tag, bool ok);
    bool HeldUp() const;
    std::atomic<Clock::rep> busy_since{0};  // of the steady clock; 0: it waits
    std::atomic<bool> ended{false};
    std::thread thread;
  };
  void Start(Worker& worker, bool relief);
  void Run(Worker& worker);
  // Waits for the next completion, in the way that `policy` proposes. False after the shutdown.
  bool Next(SpinPolicy& policy, void** tag, bool* ok);
  void RunAsRelief(Worker& worker);
  bool AllHeldUp() const;

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Worker>> relief_;  // of the thread that calls AddThreadIfAllBusy
  bool stopped_ = false;
};

}  // namespace cohort
