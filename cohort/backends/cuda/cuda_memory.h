// CudaMemory: the memory of one device of type "GPU". AllocationOwner: for whom memory is allocated, for error
// messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/cuda_stream.h"
#include "cohort/backends/cuda/driver.h"
#include "cohort/core/buffer.h"
#include "cohort/core/mutex.h"
#include "cohort/device/memory/memory_use.h"
#include "cohort/graph/graph.h"

namespace cohort::cuda {

// While it exists, memory that its thread allocates counts as memory of the node, or of what `name` says, which must
// live as long. The thread that made it destroys it.
class AllocationOwner {
 public:
  explicit AllocationOwner(const Node& node);
  explicit AllocationOwner(const char* name);
  ~AllocationOwner();
  AllocationOwner(const AllocationOwner&) = delete;
  AllocationOwner& operator=(const AllocationOwner&) = delete;

 private:
  const Node* const node_before_;
  const char* const name_before_;
};

// Numbers about a memory, in bytes if their names do not say something else.
struct CudaMemoryStats {
  size_t limit = 0;         // 0: it is found at the first use
  size_t in_use = 0;        // in buffers that are not freed
  size_t most_in_use = 0;   // the largest value of in_use so far
  size_t reserved = 0;      // taken from the card: in use or cached
  size_t kept = 0;          // cached for the next copies from the host
  int64_t allocations = 0;  // how many buffers were asked for
  int64_t from_card = 0;    // how many of them took memory from the card
};

// Allocates the device's buffers out of large segments of the card's memory, and keeps freed memory for the next
// buffers. A freed buffer can be allocated again at once, because all work that uses it stands on one stream, the
// compute stream. Work on another stream that uses a buffer needs an event of its own before the buffer is freed.
// Buffers for copies from the host (AllocateForCopy) are kept apart when they are freed, so that the next copy does not
// wait for the compute stream. The device and the buffers share ownership of the memory, so it may outlive the device.
// Thread-safe.
class CudaMemory final : public Allocator, public std::enable_shared_from_this<CudaMemory> {
 public:
  struct Options {
    int card = 0;
    size_t limit = 0;                         // bytes that it may take from the card
    bool reserve_all = false;                 // takes them at the first use, and not bit by bit
    std::string device = "GPU";               // the device's name ("GPU:0"), for errors and for MemoryUse
    std::function<size_t()> find_limit = {};  // if set, returns the limit at the first use
  };
  // `compute` is the stream that orders the reuse of memory. Uses no card.
  CudaMemory(MemorySpace space, Driver& driver, CudaStream& compute, Options options);
  ~CudaMemory() override;

  // Throws ResourceExhaustedError if there is not enough memory, also after what all devices of the card keep, and what
  // their recorded steps do not need now, has been given back. The message lists the largest holders. Throws the
  // driver's error if the card cannot be used, and FailedPreconditionError in a child that was forked after the first
  // use of a card (UseCards).
  BufferPtr Allocate(size_t bytes) override;
  MemorySpace space() const override { return space_; }
  // A buffer that another stream than the compute stream fills, and the event of the compute stream at which the last
  // user of its memory has ended.
  struct ForCopy {
    BufferPtr buffer;
    std::shared_ptr<StreamEvent> writable;
  };
  // Does what Allocate does. Prefers free buffers of the same size that earlier calls have returned: then the event
  // stands before all work that was enqueued on the compute stream after a later call, and is reached, unless the
  // buffers of several steps wait for theirs, or there is no other free memory. Otherwise it stands behind all work
  // that is on the stream now.
  ForCopy AllocateForCopy(size_t bytes);
  // Does the same, but only with memory that nobody uses: nothing is given back, and no recorded step lets go of
  // anything. If there is none, returns no buffer. Throws what Allocate throws, but not ResourceExhaustedError.
  ForCopy TryAllocateForCopy(size_t bytes);
  CudaMemoryStats stats() const;
  // Gives segments that have no buffer in use back to the card. Waits for the card's work if there is one.
  void Trim();
  // Sets a function that is called, without a lock, before an allocation of this memory, or of another one of the card,
  // fails. It returns whether it has freed something, so that it is worth another attempt. It may be called after the
  // memory has ended. Requires: no other thread uses the memory yet.
  void SetBeforeExhausted(std::function<bool()> before);
  // Says that the compute stream has ended. Requires: the stream has run all its work.
  void Detach();
  // Says that work of the card may write to the memory for ever: no other memory of the card makes it give anything
  // back from now on.
  void Withhold();

 private:
  struct Block;
  struct Segment;
  class DeviceBuffer;
  struct BySize {
    using is_transparent = void;
    bool operator()(const Block* a, const Block* b) const;
    bool operator()(const Block* a, size_t size) const;
  };

  // Returns a buffer of `bytes` bytes that owns the block, which is in use.
  BufferPtr BufferOf(Block* block, size_t bytes);
  // Returns a block that is in use from now on. Throws ResourceExhaustedError.
  Block* TakeOrThrow(size_t bytes, bool for_copy);
  // Returns the same, or null if there is not enough memory. If `gives_back`, first makes kept blocks free, and gives
  // segments that have no buffer in use back to the card.
  Block* Take(size_t size, bool for_copy, bool gives_back);
  // Returns the kept block of this size that is free for the longest time, or null. If its event is not reached,
  // returns null, too, unless `waits` or blocks of this size wait for many events. The block is in use from now on.
  Block* TakeKept(size_t size, bool waits) COHORT_REQUIRES(mu_);
  // Counts the block as in use, by the owner of the thread's allocations.
  void NoteUse(Block* block) COHORT_REQUIRES(mu_);
  // Returns a free block, or null.
  Block* Find(size_t size) COHORT_REQUIRES(mu_);
  // Returns a free block of a new segment, or null.
  Block* Grow(size_t size) COHORT_REQUIRES(mu_);
  void Split(Block* block, size_t size) COHORT_REQUIRES(mu_);
  void Free(Block* block);
  // Keeps a freed block for AllocateForCopy. Makes others free for all buffers if too much is kept. Returns false if
  // the block alone is too much.
  bool Keep(Block* block) COHORT_REQUIRES(mu_);
  // Makes kept blocks free for all buffers: all, or those that are kept for the longest time, until at most `bytes` are
  // kept. Returns whether there was one.
  bool ReleaseKept(size_t bytes = 0) COHORT_REQUIRES(mu_);
  void MakeFree(Block* block) COHORT_REQUIRES(mu_);
  void MergeWithNext(Block* block) COHORT_REQUIRES(mu_);
  void TrimLocked() COHORT_REQUIRES(mu_);
  [[noreturn]] void ThrowExhausted(size_t bytes);

  const MemorySpace space_;
  Driver& driver_;
  CudaStream& compute_;  // until Detach
  const Options options_;
  std::function<bool()> before_exhausted_;
  MemoryUse& use_;
  mutable Mutex mu_;
  bool detached_ COHORT_GUARDED_BY(mu_) = false;
  bool limit_is_known_ COHORT_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Segment>> segments_ COHORT_GUARDED_BY(mu_);
  std::set<Block*, BySize> free_ COHORT_GUARDED_BY(mu_);
  // Blocks for copies that are free: those with an event, by size and then in the order in which they were freed; and
  // those that get the event that is recorded next.
  std::map<size_t, std::deque<Block*>> kept_ COHORT_GUARDED_BY(mu_);
  std::vector<Block*> kept_without_event_ COHORT_GUARDED_BY(mu_);
  int64_t times_kept_ COHORT_GUARDED_BY(mu_) = 0;
  CudaMemoryStats stats_ COHORT_GUARDED_BY(mu_);
};

}  // namespace cohort::cuda
