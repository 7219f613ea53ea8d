// Buffer: a reference-counted block of memory of one memory space. BufferPtr: a reference to it. Allocator: makes
// buffers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/core/memory_space.h"

namespace cohort {

// A block of memory that counts its references. Ref, Unref and IsUnique are thread-safe. Access to the bytes is not
// synchronized. The call of Unref that removes the last reference frees the memory, on the calling thread.
class COHORT_EXPORT Buffer {
 public:
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  size_t size() const { return size_; }  // in bytes; for strings: how many strings
  MemorySpace space() const { return space_; }

  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    if (refs_.load(std::memory_order_acquire) == 1 ||
        (refs_.fetch_sub(1, std::memory_order_acq_rel) & ~kForeign) == 1) {
      Destroy();
    }
  }
  // Returns true if the caller's reference is the only one. Then the caller may write into the memory. Always returns
  // false for memory that a program has lent (Tensor::FromBlob), because kernels must not write into that memory.
  bool IsUnique() const { return refs_.load(std::memory_order_acquire) == 1; }

 protected:
  // A bit of refs_ that no count of references reaches. It is set if the program has lent the memory.
  static constexpr int32_t kForeign = 1 << 30;

  Buffer(void* data, size_t size, MemorySpace space) : data_(data), size_(size), space_(space) {}
  virtual ~Buffer() = default;
  // Called when the last reference is gone. Frees the memory and this object. (A slice of an arena frees neither. It
  // only stops keeping its arena alive, and the same run may hand it out again.)
  virtual void Destroy() = 0;

  void* data_;
  size_t size_;
  std::atomic<int32_t> refs_{1};
  MemorySpace space_;
};

// Holds one reference to a Buffer. Its destructor releases the reference. May be null. One BufferPtr must not be
// changed while another thread uses it, but each thread may use a copy of its own.
class COHORT_EXPORT BufferPtr {
 public:
  BufferPtr() = default;
  // Takes over the one reference with which every new Buffer begins. Does not call Ref().
  static BufferPtr Adopt(Buffer* buffer) {
    BufferPtr pointer;
    pointer.buffer_ = buffer;
    return pointer;
  }
  BufferPtr(const BufferPtr& other) : buffer_(other.buffer_) {
    if (buffer_ != nullptr) buffer_->Ref();
  }
  BufferPtr(BufferPtr&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferPtr& operator=(BufferPtr other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferPtr() {
    if (buffer_ != nullptr) buffer_->Unref();
  }
  Buffer* get() const { return buffer_; }
  Buffer* operator->() const { return buffer_; }
  explicit operator bool() const { return buffer_ != nullptr; }

 private:
  Buffer* buffer_ = nullptr;
};

// Makes buffers of one memory space. Thread-safe, except StepAllocator (runtime/plan/arena.h), which allocates for one
// run on one thread at a time. Allocate never returns null.
class COHORT_EXPORT Allocator {
 public:
  virtual ~Allocator() = default;
  // Returns `bytes` of uninitialized memory, aligned to 64 bytes. 0 bytes give a buffer of size 0. Throws
  // ResourceExhaustedError, with the size, if there is not enough memory.
  virtual BufferPtr Allocate(size_t bytes) = 0;
  virtual MemorySpace space() const = 0;
};

// Counts of the host allocator. They leave out blocks of less than 32 KiB.
struct COHORT_EXPORT AllocatorStats {
  int64_t bytes_in_use = 0;        // bytes in blocks that are in use
  int64_t bytes_cached = 0;        // bytes in freed blocks that are kept for later
  int64_t system_allocations = 0;  // blocks that were taken from the system since the process started
};

// Returns the allocator of host memory. It exists as long as the process. It keeps freed blocks of 32 KiB and more and
// uses them again, because the first use of a new page of memory takes much time. Smaller blocks come from the C
// library and go back to it.
COHORT_EXPORT Allocator& HostAllocator();
COHORT_EXPORT AllocatorStats HostAllocatorStats();
// Frees all blocks that the host allocator keeps.
COHORT_EXPORT void TrimHostAllocator();

}  // namespace cohort
