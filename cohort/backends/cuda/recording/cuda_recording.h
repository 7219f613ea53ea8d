// CudaRecording: what the kernels of a step use while the step is recorded as a CUDA graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/error_words.h"
#include "cohort/backends/cuda/recording/recording_memory.h"
#include "cohort/core/tensor.h"
#include "cohort/device/recorded_step.h"
#include "cohort/device/variable_resource.h"

namespace cohort::cuda {

// What a recorded step needs besides its graph. The CudaRecording fills it. Then the recorded step owns it.
struct RecordedParts {
  struct Feed {
    size_t arg;
    Tensor place;
  };
  struct Fetch {
    size_t ret;
    DType dtype;
    Shape shape;
    const void* pinned;  // where the graph copies the value; null if it is `value` in each step
    Tensor value;
  };
  // Pinned memory that the host writes before each run.
  struct Written {
    void* pinned;
    std::function<void(void* to)> write;
  };
  // A check of the step, by its number less 1.
  struct Check {
    ErrorWords::Describe describe;
    std::string where;
  };

  std::shared_ptr<RecordingMemory> memory;
  Tensor pinned;  // the graph copies from it and to it
  std::vector<Feed> feeds;
  std::vector<Fetch> fetches;
  std::vector<Written> written;
  std::vector<VariableResource::Place> variables;
  std::vector<Tensor> handles;  // keep the variables
  std::vector<Tensor> held;     // device memory that must not be used for anything else, each buffer once
  std::deque<Check> checks;
  const uint64_t* outcome = nullptr;  // pinned: the error word and the value at its position, after a run

  // Returns where the outcome of the checks stands after a run, or null if there are no checks.
  const uint64_t* error() const { return checks.empty() ? nullptr : outcome; }
};

// Thrown through kernels if a recording needs more pinned memory than it has. The recording is then made again.
struct RecordingNeedsPinned {
  size_t bytes;
};

// One attempt to record a step. It exists on the thread that captures, from the begin of the capture to its end, and
// only that thread uses it. The parts of the backend that kernels use ask for it (Current), and enqueue to its stream.
//
// The kernels run as in a step that is launched, but none of their work runs now. So a variable stays as it is: an
// update is recorded at the place of the value, and the recorded step makes sure that it still lies there. What the
// kernels take from the host, such as a shape that became a value on the card, is kept in pinned memory.
class CudaRecording final : public StepRecorder::Recording {
 public:
  // `stream` is being captured. `pinned` is a tensor of bytes in pinned memory.
  CudaRecording(Driver& driver, StreamHandle stream, std::shared_ptr<RecordingMemory> memory, Tensor pinned);
  // Buffers that are freed from now on enqueue nothing.
  ~CudaRecording() override;
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;

  // Returns the recording that the calling thread makes, or null.
  static CudaRecording* Current();
  // Throws UnimplementedError if the calling thread makes a recording. `what` says what it must not do: "to wait for
  // the card".
  static void Refuse(const char* what) {
    if (Current() != nullptr) [[unlikely]]
      Fail(what);
  }

  StreamHandle stream() const { return stream_; }
  Allocator& allocator() override { return *parts_.memory; }
  Tensor Feed(size_t arg, const Tensor& value) override;
  void Fetch(size_t ret, const Tensor& value) override;

  // Returns a tensor of the card that has the value in each run. Requires: it lies in host memory, and has numbers.
  Tensor CopyFromHost(const Tensor& value);
  // Returns memory of the card that has the bytes that `write` writes to host memory before each run. Both the memory
  // and what `write` uses must be there as long as the work that reads it, or the plan.
  Tensor PerRun(size_t bytes, std::function<void(void* to)> write);
  // Says that the step reads the variable at the place of `value`, which is the variable's. The handle of the variable
  // is an input of the kernel.
  void NoteRead(const KernelContext& ctx, VariableResource& variable, const Tensor& value);
  // Does what VariableResource::UpdateTogether does, with equal `olds` and `outs`. Throws AbortedError if something
  // else holds a value: a reader later in the step, or another step.
  using Change = std::function<void(std::span<const Tensor> olds, std::span<Tensor> outs)>;
  void Update(const KernelContext& ctx, const std::vector<VariableResource*>& variables, const Change& change);
  // As the methods of ErrorWords. There is one word for the recording.
  const ErrorWord* word() const { return word_; }
  ErrorWords::Check Announce(ErrorWords::Describe describe, std::string where);

  // Ends the work: records that the error word is read. Throws UnimplementedError if a value of the step lives on.
  void Finish();
  RecordedParts TakeParts() {
    parts_.memory->EndRecording();
    return std::move(parts_);
  }

 private:
  [[noreturn]] static void Fail(const char* what);
  // Returns aligned pinned memory. Throws RecordingNeedsPinned if there is not enough.
  char* TakePinned(size_t bytes);
  Tensor NewHeld(DType dtype, const Shape& shape);
  void Hold(const Tensor& value);
  void Note(const KernelContext& ctx, VariableResource& variable, const Tensor& value, bool updates);

  Driver& driver_;
  const StreamHandle stream_;
  RecordedParts parts_;
  size_t pinned_used_ = 0;
  ErrorWord* word_ = nullptr;  // null: no check yet
};

}  // namespace cohort::cuda
