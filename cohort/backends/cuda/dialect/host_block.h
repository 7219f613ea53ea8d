// HostBlock: one block of threads of a launch that runs on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "cohort/backends/cuda/driver.h"

namespace cohort::cuda {

class HostFibers;

// What the threads of one block share, and which of them runs now. RunHostBlocks owns it. Only the thread that calls
// RunHostBlocks uses it.
class HostBlock {
 public:
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;

  const LaunchSize& size() const { return size_; }
  uint32_t thread(int axis) const { return thread_[axis]; }
  uint32_t block(int axis) const { return block_[axis]; }

  // Called by the running thread of a kernel that waits.
  void Sync();
  // Gives `mine` to the thread whose lane is this thread's with the bits of `mask` flipped, and gets its value into
  // `other`. All threads of the warp call it. Requires: `bytes` is at most 8, and `mask` is from 0 to 31.
  void Exchange(const void* mine, void* other, size_t bytes, int mask);
  // Returns the block's memory with this key, which is aligned to 16 bytes. Each place in a kernel that declares shared
  // memory has a key of its own. The memory is poisoned when a block begins: all bytes are kPoison.
  void* Shared(const void* key, size_t bytes);
  void* DynamicShared();

  static constexpr unsigned char kPoison = 0xff;  // floats of such bytes are NaN

 private:
  friend void RunHostBlocks(const LaunchSize& size, bool waits, const std::function<void(HostBlock&)>& body);
  friend class HostFibers;
  explicit HostBlock(const LaunchSize& size) : size_(size) {}
  // Makes `linear` the block that runs, and poisons the shared memory.
  void Begin(uint64_t linear);
  // Makes `linear` the thread that runs.
  void SetThread(uint32_t linear);

  LaunchSize size_;
  uint32_t thread_[3] = {0, 0, 0};
  uint32_t block_[3] = {0, 0, 0};
  std::map<const void*, std::vector<unsigned char>> shared_;
  std::vector<unsigned char> dynamic_;
  HostFibers* fibers_ = nullptr;  // null if the kernel does not wait
};

// Runs `body` once for each thread of each block. The blocks run one after the other, in a random order. The threads of
// a block also run one after the other, from the first to the last or from the last to the first. If `waits`, they are
// fibers (ucontext), which change in Sync and Exchange. Ends the process with a message if some threads of a block wait
// for others that have ended or that wait for something else. The memory of fibers belongs to the calling thread, which
// keeps it for its next call.
void RunHostBlocks(const LaunchSize& size, bool waits, const std::function<void(HostBlock&)>& body);

// For tests: sets the seed of the order of blocks and threads. Launches after it take their orders from it in turn.
void SeedHostBlocks(uint64_t seed);

}  // namespace cohort::cuda
