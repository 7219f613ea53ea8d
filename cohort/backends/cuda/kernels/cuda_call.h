// CudaCall: what a kernel of the CUDA backend needs to enqueue its work.
#pragma once

#include "cohort/backends/cuda/cuda_device.h"
#include "cohort/backends/cuda/dialect/launch.h"
#include "cohort/backends/cuda/recording/cuda_recording.h"
#include "cohort/device/kernel.h"
#include "cohort/device/output_shapes.h"

namespace cohort::cuda {

// One call of a kernel: it is made in OpKernel::Compute and ends with it. Memory that the thread allocates meanwhile
// counts as the node's.
class CudaCall {
 public:
  // Checks that each input lies where the op wants it. Throws InternalError otherwise, and the step's error if the step
  // has failed or was cancelled.
  explicit CudaCall(KernelContext& ctx);

  KernelContext& ctx() const { return ctx_; }
  CudaDevice& device() const { return device_; }
  Driver& driver() const { return device_.driver(); }
  // Returns the compute stream, or the stream that is captured if the step is recorded.
  StreamHandle stream() const {
    return recording_ == nullptr ? device_.compute_stream()->handle() : recording_->stream();
  }
  // Returns the recording of the step, or null if its work runs.
  CudaRecording* recording() const { return recording_; }

  // Allocates all outputs by the op's shape rule (OutputShapes). Returns output 0, or null if there is none. The
  // pointer is valid until the kernel ends. Throws InternalError if the rule does not know a shape.
  Tensor* AllocateOutputs();
  // Enqueues a kernel.
  template <typename K>
  void Launch(const LaunchSize& size, const K& kernel) const {
    cuda::Launch(driver(), stream(), size, kernel);
  }
  // Says that an update of a variable was enqueued. Each update calls it once, after its work was enqueued, and under
  // the variable's lock.
  void CountUpdate() const { device_.error_words().CountUpdate(ctx_); }

 private:
  KernelContext& ctx_;
  CudaDevice& device_;
  CudaRecording* const recording_;
  const AllocationOwner owner_;
};

// Return whether an input or an output of the node lies in host memory on every device.
bool InputOnHost(const Node& node, int i);
bool OutputOnHost(const Node& node, int i);

}  // namespace cohort::cuda
