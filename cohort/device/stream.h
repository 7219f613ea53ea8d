// Stream: a queue of a device's work. StreamEvent: a point in a stream. A device has streams (Device::compute_stream())
// only if its kernels enqueue their work and return before it is done. Steps on other devices use nothing of this
// header.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "cohort/core/error.h"

namespace cohort {

// A point in a stream. It is reached when all work that was enqueued before it has run, and it stays reached.
// Thread-safe. shared_ptrs own it, and it may live longer than its stream.
class StreamEvent {
 public:
  using Callback = std::function<void(const Status&)>;

  virtual ~StreamEvent() = default;
  virtual bool reached() const = 0;
  // Waits on the calling thread until the event is reached, and returns OK. Returns a status with kDeadlineExceeded if
  // `deadline` passes first, and the device's error if the device has failed.
  virtual Status Synchronize(std::chrono::steady_clock::time_point deadline) = 0;
  // Calls `callback` once: with OK when the event is reached, or with the device's error if the device has failed.
  // Calls it on a thread of the device, or on the calling thread before OnReady returns. The callback must not wait and
  // must not call the device: it must not enqueue work, and not allocate or free device memory. Device::RunOnHost runs
  // such work on another thread.
  virtual void OnReady(Callback callback) = 0;
};

// A queue of work of one device. The work runs in the order in which it was enqueued. Each backend has its own
// functions to enqueue work. Thread-safe. The device owns its streams.
class Stream {
 public:
  virtual ~Stream() = default;
  // Returns an event that is reached when all work that has been enqueued so far has run.
  virtual std::shared_ptr<StreamEvent> Record() = 0;
  // Makes all work that is enqueued on this stream from now on wait until `event` is reached. The call itself does not
  // wait. Requires: `event` is of a stream of the same backend.
  virtual void Wait(const std::shared_ptr<StreamEvent>& event) = 0;
};

}  // namespace cohort
