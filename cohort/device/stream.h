// Stream and StreamEvent: a queue of a device's work, and a point in it. Only devices whose kernels enqueue their work
// and return have streams (Device::compute_stream()); a step on another device calls nothing of this header.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "cohort/core/error.h"

namespace cohort {

// A point of a stream. It is reached when all work that was enqueued before it has run, and stays so. Thread-safe; it
// may outlive its stream.
class StreamEvent {
 public:
  using Callback = std::function<void(const Status&)>;

  virtual ~StreamEvent() = default;
  virtual bool reached() const = 0;
  // Waits on the calling thread until the event is reached. Returns DeadlineExceeded if it was not reached at
  // `deadline`, and the device's failure if the device has failed.
  virtual Status Synchronize(std::chrono::steady_clock::time_point deadline) = 0;
  // Calls `callback` once, when the event is reached or the device has failed: on a thread of the device, or before
  // OnReady returns. The callback must neither block nor call the device: it must not enqueue, allocate or free device
  // memory. It hands such work to another thread (Device::RunOnHost).
  virtual void OnReady(Callback callback) = 0;
};

// A queue of work of one device, which runs in the order in which it was enqueued. How work is enqueued is the
// backend's own matter. Thread-safe. Belongs to its device.
class Stream {
 public:
  virtual ~Stream() = default;
  // An event behind all work that was enqueued so far.
  virtual std::shared_ptr<StreamEvent> Record() = 0;
  // Work that is enqueued later runs after `event`, which is one of a stream of the same backend. Does not block.
  virtual void Wait(const std::shared_ptr<StreamEvent>& event) = 0;
};

}  // namespace cohort
