// ErrorWords: how a kernel on a card reports bad data, and how later updates of the same step learn of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "cohort/backends/cuda/cuda_stream.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/device/kernel.h"
#include "cohort/device/stream.h"

namespace cohort::cuda {

// A word in device memory. 0: no error. A kernel that finds a bad value sets it (dialect/report.h) to
// EncodeError(check, position): which check of the step failed, and where. The word behind it then has the bad value. A
// kernel that updates variables reads the word first and keeps the old values if it is not 0.
using ErrorWord = uint64_t;

inline constexpr int kErrorPositionBits = 40;

// Encodes for kernels (dialect code, so it is constexpr): `check` from 1, `position` from 0 to 2^40 - 1.
constexpr ErrorWord EncodeError(uint32_t check, int64_t position) {
  return (static_cast<ErrorWord>(check) << kErrorPositionBits) |
         (static_cast<ErrorWord>(position) & ((ErrorWord{1} << kErrorPositionBits) - 1));
}

// The words of the steps that run on one device. The device owns it, and makes the compute stream call BeforeRecord. So
// the words are read back when an event is recorded, and before callbacks of that event and of later ones are called;
// the event at the end of a step is one of them. Thread-safe.
//
// While the calling thread records a step (recording/cuda_recording.h), the word and the checks are the recording's.
//
// It also counts updates for the step's StepError. Updates behind a check that may still fail are counted when the word
// has been read back: then it is known which of them were applied.
class ErrorWords {
 public:
  // `stream` is the compute stream. Uses no card.
  ErrorWords(Driver& driver, int card, const CudaStream& stream);
  // Requires: the stream has run all its work.
  ~ErrorWords();
  ErrorWords(const ErrorWords&) = delete;
  ErrorWords& operator=(const ErrorWords&) = delete;

  // Returns the word of the step of `ctx` on this device; every kernel of one step gets the same. Null if no check of
  // the step has been announced whose outcome is still unknown. If a check has failed, the step's error is set before
  // the word becomes null: so ask for the word first.
  const ErrorWord* WordOf(const KernelContext& ctx);
  // As WordOf, for an update, which need not look if the result is null. The word stays that of the step until Release
  // is called, after the update was enqueued: meanwhile the outcome of a check may become known. Throws the step's
  // error if it is set.
  const ErrorWord* Hold(const KernelContext& ctx);
  void Release(const KernelContext& ctx);

  // Announces a check. Returns the word and the number of the check for ReportError. Call it before the kernel's work
  // is enqueued, on the thread that enqueues it. `describe` makes the error from the position and the value that the
  // kernel has reported. It runs on the host, in a callback of an event, so it must not call the device. Throws
  // InternalError if the step keeps no errors or ChecksValues (kernels/value_checks.h) lacks the node's op, and
  // ResourceExhaustedError if there is no memory for the word.
  struct Check {
    ErrorWord* word;
    uint32_t number;
  };
  using Describe = std::function<Status(int64_t position, int64_t value)>;
  Check Announce(const KernelContext& ctx, Describe describe) {
    return Announce(ctx, std::move(describe), ctx.Describe());
  }
  // The error says `where` it happened, and not the node of `ctx`.
  Check Announce(const KernelContext& ctx, Describe describe, std::string where);
  // Call it after the kernel that checks was enqueued, once for each call of Announce. Only then is the word read back.
  void Follow(const KernelContext& ctx);

  // Returns whether work of the step may be enqueued. If it returns false, the step's error is set (StepError::MayRun).
  bool MayRun(const KernelContext& ctx);
  // Call it after an update of a variable was enqueued.
  void CountUpdate(const KernelContext& ctx);

  // Enqueues the copies of the words that have to be read back. Returns the callback for the event behind them, or an
  // empty function.
  StreamEvent::Callback BeforeRecord();

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace cohort::cuda
