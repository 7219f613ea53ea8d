// CudaStepRecorder: records steps of a device of type "GPU" as CUDA graphs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/backends/cuda/cuda_stream.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/pinned_pool.h"
#include "cohort/backends/cuda/recording/cuda_recording.h"
#include "cohort/backends/cuda/recording/recorded_graph.h"
#include "cohort/backends/cuda/recording/recording_memory.h"
#include "cohort/core/mutex.h"
#include "cohort/device/recorded_step.h"
#include "cohort/device/resource.h"

namespace cohort::cuda {

// Captures the work of a step on a stream of its own, so that other threads may enqueue to the compute stream
// meanwhile. The graph is then launched on the compute stream. The device owns the recorder. Thread-safe.
class CudaStepRecorder final : public StepRecorder {
 public:
  // `compute` is the compute stream of the device with this name and type, and `copy_ahead` does what CopyAhead does.
  // The references must be valid as long as the recorder lives.
  CudaStepRecorder(Driver& driver, int card, const std::string& device, CudaStream& compute, CudaMemory& memory,
                   std::string type, ResourceManager& resources, std::function<Tensor(const Tensor&)> copy_ahead);
  ~CudaStepRecorder() override;

  std::string WhyNot(const Node& node, OpKernel& kernel) const override;
  std::unique_ptr<RecordedStep> Record(const Work& work) override;
  Tensor CopyAhead(const Tensor& value) override { return copy_ahead_(value); }

 private:
  // Returns the recording, or null if it needs more memory or a kernel that the card has not loaded; then this is there
  // for the next attempt.
  std::unique_ptr<RecordedStep> TryToRecord(const Work& work) COHORT_REQUIRES(mu_);
  // Returns the graph of what `work` enqueues. `parts` gets the rest.
  GraphHandle Capture(const Work& work, const std::shared_ptr<RecordingMemory>& memory, RecordedParts* parts)
      COHORT_REQUIRES(mu_);
  // Returns a segment for the next attempt, if one of `bytes` bytes had no room for `request` more: it is twice as
  // large, so that few attempts are enough, or, if there is not that much memory, it has room for the request. Throws
  // ResourceExhaustedError if that is too much, too.
  RecordingSegmentPtr MakeLarger(size_t bytes, size_t request) COHORT_REQUIRES(mu_);
  // Makes pinned memory of at least this size for the next attempt. Throws UnimplementedError if it is too much, and
  // ResourceExhaustedError if there is none.
  void MakePinned(size_t bytes) COHORT_REQUIRES(mu_);

  Driver& driver_;
  const int card_;
  const std::string type_;
  const std::string device_;
  CudaMemory& memory_;
  ResourceManager& resources_;
  const std::function<Tensor(const Tensor&)> copy_ahead_;
  const std::shared_ptr<PinnedPool> pinned_pool_;
  const std::shared_ptr<RecordedGraphs> graphs_;
  const RecordedGraph::Home home_;

  Mutex mu_;                                    // one step at a time is recorded
  StreamHandle stream_ COHORT_GUARDED_BY(mu_);  // null until the first recording
  RecordingSegments segments_ COHORT_GUARDED_BY(mu_);
  // Of the attempts to record a step.
  std::vector<RecordingSegmentPtr> own_ COHORT_GUARDED_BY(mu_);
  Tensor pinned_ COHORT_GUARDED_BY(mu_);
  bool fits_ COHORT_GUARDED_BY(mu_) = false;  // an attempt has shown how much memory the step needs
};

}  // namespace cohort::cuda
