// TestMemory: the memory of one TEST device. Its addresses fault when the host follows them, and what was freed is
// poisoned and reused in the order of the device's compute stream.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "cohort/backends/test/test_stream.h"
#include "cohort/core/buffer.h"
#include "cohort/core/mutex.h"
#include "cohort/core/tensor.h"

namespace cohort {

// Fills every byte of fresh and of freed memory: such floats are NaN, such integers -1.
inline constexpr unsigned char kTestPoison = 0xFF;

// Thread-safe. Buffers keep it alive, so it may outlive its device.
//
// A buffer that is freed can be allocated again at once, as on a GPU: its poison stands on the compute stream behind
// all work that was enqueued before it was freed, and before all work that is enqueued after it was allocated again.
// Work on another stream that still uses it then reads the poison.
class TestMemory final : public Allocator, public std::enable_shared_from_this<TestMemory> {
 public:
  // `compute` orders the reuse of memory until Detach is called.
  TestMemory(MemorySpace space, TestStream& compute) : space_(space), compute_(&compute) {}
  ~TestMemory() override;

  BufferPtr Allocate(size_t bytes) override;
  MemorySpace space() const override { return space_; }
  // The stream is gone: from now on memory is poisoned when it is freed. Requires: the stream has run all its work.
  void Detach();
  // Bytes of the buffers that somebody holds.
  size_t bytes_in_use() const;

 private:
  class TaggedBuffer;
  struct Block {
    void* data;
    size_t capacity;
  };
  Block Take(size_t bytes);
  void Free(Block block);

  const MemorySpace space_;
  mutable Mutex mu_;
  TestStream* compute_ COHORT_GUARDED_BY(mu_);                        // null after Detach
  std::map<size_t, std::vector<void*>> free_ COHORT_GUARDED_BY(mu_);  // by capacity
  size_t bytes_in_use_ COHORT_GUARDED_BY(mu_) = 0;
};

// The address at which the bytes of `value`, which lies in the memory of a TEST device, can be read and written. Only
// work on a stream of the device may use it.
void* TrueAddress(const Tensor& value);
// A tensor in host memory over bytes at `data`. It does not keep them alive.
Tensor BorrowedView(DType dtype, const Shape& shape, void* data);

}  // namespace cohort
