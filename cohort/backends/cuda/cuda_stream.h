// CudaStream and CudaEvent: the streams of a device of type "GPU".
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cohort/backends/cuda/driver.h"
#include "cohort/core/mutex.h"
#include "cohort/device/stream.h"

namespace cohort::cuda {

class StreamState;

// A point in a CudaStream. The stream and everybody who waits for the event share ownership. Thread-safe.
class CudaEvent final : public StreamEvent, public std::enable_shared_from_this<CudaEvent> {
 public:
  // Used by CudaStream. `number` counts the events of the stream from 1. 0: the stream had no work yet.
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

// One stream. The device owns it. Thread-safe. The driver's stream, and with it the card's context, is made at the
// first use. If that is not possible, handle() and Wait throw. If the device fails later, nothing here throws: events
// then carry the device's error.
class CudaStream final : public Stream {
 public:
  // How long the end of a stream or a device waits for work that does not end.
  static constexpr std::chrono::minutes kPatience{10};

  // `name` is the name of the stream, and of its thread, in debuggers.
  CudaStream(Driver& driver, int card, const std::string& name, std::chrono::milliseconds patience = kPatience);
  // Calls Finish with the patience, unless it has returned false before.
  ~CudaStream() override;
  // Waits until all work has run and all callbacks have returned, or the card has failed. Returns false if the deadline
  // comes first: then the callbacks have got DeadlineExceededError, and the stream is of no use any more. Its work may
  // still run later and write to its memory. The process keeps the driver's stream, and a thread that waits for it.
  // Requires: it is not called by a callback, and no other thread uses the stream.
  bool Finish(std::chrono::steady_clock::time_point deadline);
  // Returns whether Finish has returned false, or is about to.
  bool abandoned() const { return abandoned_; }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  std::shared_ptr<StreamEvent> Record() override;
  void Wait(const std::shared_ptr<StreamEvent>& event) override;
  // Returns the driver's stream. Throws the driver's error if it cannot be made, and FailedPreconditionError in a child
  // that was forked after the first use of a card (UseCards).
  StreamHandle handle() const;

  // Sets a function that each later Record calls first, one call at a time, once the driver's stream exists. It may
  // enqueue work on the stream. What it returns, if not empty, is for work that it has enqueued, and becomes the first
  // callback of the new event. Requires: no other thread uses the stream yet.
  using BeforeRecord = std::function<StreamEvent::Callback()>;
  void SetBeforeRecord(BeforeRecord before) { before_record_ = std::move(before); }

 private:
  Driver& driver_;
  const int card_;
  const std::string name_;
  const std::chrono::milliseconds patience_;
  const std::shared_ptr<StreamState> state_;
  std::atomic<bool> abandoned_{false};
  mutable Mutex make_mu_;
  mutable std::atomic<void*> native_{nullptr};  // null: not made yet
  BeforeRecord before_record_;
};

}  // namespace cohort::cuda
