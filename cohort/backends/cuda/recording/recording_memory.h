// RecordingSegments and RecordingMemory: the device memory of recorded steps.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "cohort/backends/cuda/cuda_memory.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/core/buffer.h"
#include "cohort/core/mutex.h"

namespace cohort::cuda {

// Device memory whose address stays the same as long as somebody holds it.
struct RecordingSegment {
  BufferPtr buffer;
  char* data() const { return static_cast<char*>(buffer->data()); }
  size_t size() const { return buffer->size(); }
};
using RecordingSegmentPtr = std::shared_ptr<const RecordingSegment>;

// The segments that the recorded steps of one device have in common. They can share their memory because they run one
// after another, in the order of the compute stream, and none expects to find anything of an earlier run. A segment is
// freed when no recording holds it any more. The device's recorder owns it. Not thread-safe.
class RecordingSegments {
 public:
  explicit RecordingSegments(CudaMemory& memory) : memory_(memory) {}

  // Returns the segments that recordings hold, in the order in which they were made.
  std::vector<RecordingSegmentPtr> Held();
  // Makes a segment. Throws ResourceExhaustedError if there is not enough memory.
  RecordingSegmentPtr Make(size_t bytes);

 private:
  CudaMemory& memory_;
  std::vector<std::weak_ptr<const RecordingSegment>> segments_;
};

// Thrown through kernels if a recording needs more memory than its segments have. The recording is then made again.
struct RecordingNeedsMemory {
  size_t bytes;
};

// Allocates the buffers of one recording in segments. A request takes the first place that is large enough, so that
// equal requests get equal places. While the step is recorded, memory that is freed can be allocated again at once,
// because all work of the recording stands on one stream. The recording and its buffers share ownership. Not
// thread-safe.
class RecordingMemory final : public Allocator, public std::enable_shared_from_this<RecordingMemory> {
 public:
  // `stream` is the one that is captured.
  RecordingMemory(MemorySpace space, Driver& driver, StreamHandle stream, std::vector<RecordingSegmentPtr> segments);

  // Throws RecordingNeedsMemory if no place is large enough.
  BufferPtr Allocate(size_t bytes) override;
  MemorySpace space() const override { return space_; }

  // Says that the step has been recorded: from now on buffers that are freed enqueue nothing.
  void EndRecording() { recording_ = false; }
  // Returns how many buffers there are.
  int live() const { return live_; }
  // Returns how much of the segments was ever in use, from their begin on.
  size_t most_in_use() const;
  size_t size() const;

 private:
  class PieceBuffer;
  struct Space {
    RecordingSegmentPtr segment;
    std::map<size_t, size_t> free;  // the free pieces: offset and size
    size_t most = 0;                // the end of the last piece that was ever in use
  };
  void Free(size_t space, size_t offset, size_t size);

  const MemorySpace space_;
  Driver& driver_;
  const StreamHandle stream_;
  std::vector<Space> spaces_;
  int live_ = 0;
  bool recording_ = true;
};

}  // namespace cohort::cuda
