// NetworkLoop: the gRPC completion queue of one transport, and the threads that serve it. All streams of the transport
// share the queue. The reason for one queue: gRPC wakes any thread of the process that polls. With several queues this
// would often be a thread of another queue, which must then wake the right one, and each message would cost a second
// wake-up.
#pragma once

#include <grpcpp/server_builder.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "cohort/cluster/grpc/spin_policy.h"

namespace cohort {

// Says what to do when an asynchronous operation of gRPC has ended. It is the operation's tag in the queue. It must
// live until Complete is called, which may delete it.
class Completion {
 public:
  virtual ~Completion() = default;
  // Called on a thread of the loop when the operation has ended. `ok` is false if it has failed.
  virtual void Complete(bool ok) = 0;

  // Returns the tag for an operation that starts now. Everything that the starting thread has written is visible to the
  // thread that calls Complete. gRPC guarantees that already, but ThreadSanitizer cannot see it.
  void* Starts() {
    started_.store(true, std::memory_order_release);
    return this;
  }
  // Calls Complete(ok) of the Completion whose Starts has returned `tag`.
  static void Complete(void* tag, bool ok) {
    auto* const completion = static_cast<Completion*>(tag);
    if (completion->started_.load(std::memory_order_acquire)) completion->Complete(ok);
  }

 private:
  std::atomic<bool> started_{false};
};

// Serves one completion queue with a few threads. The transport owns it. Operations may be started on any thread. Calls
// of Stop and AddThreadIfAllBusy must not run at the same time.
class NetworkLoop {
 public:
  // `queue` may also serve a server. All tags in it must be Completions. If `threads` is 0, the number depends on the
  // number of cores.
  NetworkLoop(std::unique_ptr<grpc::ServerCompletionQueue> queue, int threads);
  // Calls Stop.
  ~NetworkLoop() { Stop(); }

  grpc::ServerCompletionQueue* queue() const { return queue_.get(); }
  // Waits until all operations have completed, and joins the threads. Later calls do nothing. Requires: no operation
  // will start, and AddThreadIfAllBusy will not be called any more.
  void Stop();
  // The transport must call this regularly, always from the same thread. If every thread, also every extra thread, has
  // been busy with one completion for more than 100 ms, starts an extra thread, so that heartbeats can still be sent
  // and received. There are at most three extra threads. Each runs until one of the normal threads is free. If there
  // are three already, and every thread is busy in this way, starts none and returns true: this process reads nothing
  // at present. Otherwise returns false.
  bool AddThreadIfAllBusy();

 private:
  using Clock = std::chrono::steady_clock;
  struct Worker {
    void Serve(void* tag, bool ok);
    bool HeldUp() const;
    std::atomic<Clock::rep> busy_since{0};  // a time of the steady clock; 0: the thread waits for work
    std::atomic<bool> ended{false};
    std::thread thread;
  };
  void Start(Worker& worker, bool relief);
  void Run(Worker& worker);
  // Waits for the next completion. Spins first if `policy` says so. Returns false after the queue's shutdown.
  bool Next(SpinPolicy& policy, void** tag, bool* ok);
  void RunAsRelief(Worker& worker);
  bool AllHeldUp() const;

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Worker>> relief_;  // the extra threads; only for the thread that calls AddThreadIfAllBusy
  bool stopped_ = false;
};

}  // namespace cohort
