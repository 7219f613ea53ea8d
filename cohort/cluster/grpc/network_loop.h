// NetworkLoop: the completion queue of one transport and the threads that serve it. All streams of the transport share
// it: gRPC wakes one thread of a process for whatever arrives, and were that another than the one that wants it, each
// message would cost a second wake-up.
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
};

class NetworkLoop {
 public:
  // `queue` may serve a server; tags in it are Completions.
  explicit NetworkLoop(std::unique_ptr<grpc::ServerCompletionQueue> queue);
  // Stops.
  ~NetworkLoop() { Stop(); }

  grpc::ServerCompletionQueue* queue() const { return queue_.get(); }
  // After all operations have been started that ever will be: waits until they have completed, joins the threads.
  void Stop();
  // Since when the threads have been able to take what arrives; far in the past where they always were. While one is
  // held up in a handler, now: whoever has not been listened to is not silent.
  std::chrono::steady_clock::time_point listening_since() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Worker {
    std::atomic<Clock::rep> busy_since{0};  // of the steady clock; 0: it waits
    std::thread thread;
  };
  void Run(Worker& worker);
  // Waits for the next completion, in the way that `policy` proposes. False after the shutdown.
  bool Next(SpinPolicy& policy, void** tag, bool* ok);

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::atomic<Clock::rep> held_up_until_{0};
  std::vector<std::unique_ptr<Worker>> workers_;
  bool stopped_ = false;
};

}  // namespace cohort
