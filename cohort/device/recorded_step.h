// StepRecorder: records the work that a step enqueues, so that later steps enqueue all of it with one call.
// RecordedStep: such a recording. Only a device with streams may have a recorder (Device::step_recorder). A step on any
// other device uses nothing of this header.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/tensor.h"
#include "cohort/device/kernel.h"

namespace cohort {

// The work of one step of a plan, for feeds of certain dtypes and shapes. The code that asked for the recording owns
// it, and destroys it before the device. One thread at a time uses it. Enqueue and Finish take turns.
class RecordedStep {
 public:
  enum class Outcome {
    kEnqueued,
    kNotNow,  // a value that the work would overwrite is in use elsewhere; later it may be possible again
    kStale,   // a variable has moved to another place, or may be another one: the work has to be recorded again
  };

  virtual ~RecordedStep() = default;
  // Enqueues the work on the compute stream, with the values of `args` as feeds. The caller may let go of `args` then.
  // If it returns another outcome than kEnqueued, it has enqueued nothing. Throws the device's error if the device has
  // failed. Requires: the args that the recording has as feeds have the dtypes and shapes of the recording.
  virtual Outcome Enqueue(std::span<const Tensor> args) = 0;
  // Puts the fetched values into `rets`, in memory of their own. Returns the error of a check that has failed; then no
  // update behind the check was applied. Requires: Enqueue has returned kEnqueued, and an event that was recorded on
  // the compute stream after it is reached.
  virtual Status Finish(std::span<Tensor> rets) = 0;
};

// Makes the recordings of one device, which owns it. Thread-safe.
class StepRecorder {
 public:
  // What the code that runs the kernels of a step gets while the step is recorded. The recorder owns it. Only the
  // thread that records uses it.
  class Recording {
   public:
    virtual ~Recording() = default;
    // Returns the allocator for kernels. Its memory belongs to the recording.
    virtual Allocator& allocator() = 0;
    // Returns the tensor in device memory that gets the value of args[arg] before the work of each step. `value` has
    // its dtype and shape. Requires: nothing has been allocated yet but other feeds, because the memory of what is
    // allocated and freed earlier would be overwritten by the work.
    virtual Tensor Feed(size_t arg, const Tensor& value) = 0;
    // Makes `value` become rets[ret] in each step.
    virtual void Fetch(size_t ret, const Tensor& value) = 0;
  };
  using Work = std::function<void(Recording& recording)>;

  virtual ~StepRecorder() = default;
  // Returns why a step with this kernel cannot be recorded, as the end of the sentence "The step is not recorded,
  // because ...". Returns an empty text if it can. A kernel can be recorded if all that it does follows from the shapes
  // of its inputs and from the values of its inputs in host memory, and if it waits for nothing.
  virtual std::string WhyNot(const Node& node, OpKernel& kernel) const = 0;
  // Records the work that `work` enqueues on the calling thread. None of it runs now, and no variable changes. Calls
  // `work` several times if it needs more memory than was expected. Throws AbortedError if a variable is in use
  // elsewhere at the moment or has no value, so that a later call may succeed. Throws what `work` throws,
  // ResourceExhaustedError if there is not enough memory, and UnimplementedError or the device's error if the work
  // cannot be recorded.
  virtual std::unique_ptr<RecordedStep> Record(const Work& work) = 0;
  // Begins to copy a feed of a later step to the device, beside the work that is on the compute stream. Returns the
  // copy, which work that is enqueued later on the compute stream may read. Takes only memory that nobody uses: if
  // there is too little, returns an undefined tensor. Requires: `value` has numbers, lies in host memory and is not
  // empty.
  virtual Tensor CopyAhead(const Tensor& value) = 0;
};

}  // namespace cohort
