// TestMemory: the memory of one TEST device. If host code reads or writes at the addresses of its buffers, the process
// gets a memory fault. Freed memory is poisoned (filled with kTestPoison) and reused in the order of the device's
// compute stream.
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

// The value of every byte of new and of freed memory: floats are then NaN, and integers -1.
inline constexpr unsigned char kTestPoison = 0xFF;

// Allocates the device's buffers. The device and the buffers share ownership of the TestMemory, so it may outlive the
// device. Thread-safe. A callback of an event must not call Allocate: that ends the process with a message.
// A freed buffer can be allocated again at once, as on a GPU. Poisoning it is work on the compute stream: after all
// work that was enqueued before the buffer was freed, and before all work that is enqueued after it is allocated again.
// If work on another stream still uses the buffer, that work may read the poison.
class TestMemory final : public Allocator, public std::enable_shared_from_this<TestMemory> {
 public:
  // `compute` orders the reuse of memory, and must live until Detach is called.
  TestMemory(MemorySpace space, TestStream& compute) : space_(space), compute_(&compute) {}
  ~TestMemory() override;

  BufferPtr Allocate(size_t bytes) override;
  MemorySpace space() const override { return space_; }
  // Says that the compute stream has ended. From now on, the thread that frees memory poisons it at once. Requires: the
  // stream has run all its work.
  void Detach();
  // Returns the number of bytes of all buffers that are not freed.
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

// Returns the address at which the bytes of `value`, which is in the memory of a TEST device, can be read and written.
// Only work on a stream of the device may use it.
void* TrueAddress(const Tensor& value);
// Returns a tensor in host memory that uses the bytes at `data`. The tensor does not keep the bytes alive.
Tensor BorrowedView(DType dtype, const Shape& shape, void* data);

}  // namespace cohort
