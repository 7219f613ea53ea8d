// CudaStream and CudaEvent: the streams of a device of type "GPU".
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cohort/backends/cuda/driver.h"
#include "cohort/device/stream.h"

namespace cohort::cuda {

class StreamState;

// A point in a CudaStream. The stream and everybody who waits for the event share ownership. Thread-safe.
class CudaEvent final : public StreamEvent, public std::enable_shared_from_this<CudaEvent> {
 public:
  // Used by CudaStream. `number` counts the events of the stream from 1.
  CudaEvent(std::shared_ptr<StreamState> state, EventHandle handle, int64_t number);
  ~CudaEvent() override;

  bool reached() const override;
  // When it returns OK, the callbacks of this event and of all events before it on the stream have returned. Requires:
  // it is not called by a callback.
  Status Synchronize(std::chrono::steady_clock::time_point deadline) override;
  // Callbacks of one stream are called one after another, in the order of their events. The thread that calls them is
  // the stream's own, or one that waits in Synchronize, or one that calls OnReady after the event was reached.
  void OnReady(Callback callback) override;

  EventHandle handle() const { return handle_; }

 private:
  const std::shared_ptr<StreamState> state_;
  const EventHandle handle_;
  const int64_t number_;
};

// One stream. The device owns it. Thread-safe. If the device has failed, nothing here throws: events then carry the
// device's error.
class CudaStream final : public Stream {
 public:
  // `name` is the name of the stream, and of its thread, in debuggers.
  CudaStream(Driver& driver, int card, const std::string& name);
  // Waits until all work has run and all callbacks have returned.
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  std::shared_ptr<StreamEvent> Record() override;
  void Wait(const std::shared_ptr<StreamEvent>& event) override;
  StreamHandle handle() const { return handle_; }

  // Sets a function that each later Record calls first. It may enqueue work on the stream. What it returns, if not
  // empty, becomes the first callback of the new event. Requires: no other thread uses the stream yet.
  using BeforeRecord = std::function<StreamEvent::Callback()>;
  void SetBeforeRecord(BeforeRecord before) { before_record_ = std::move(before); }

 private:
  Driver& driver_;
  const int card_;
  const StreamHandle handle_;
  const std::shared_ptr<StreamState> state_;
  BeforeRecord before_record_;
};

}  // namespace cohort::cuda
