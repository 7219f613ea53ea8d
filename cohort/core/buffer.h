// Buffer: a reference-counted block of memory that knows in which memory space it lies. Allocator: where it comes from.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/core/memory_space.h"

namespace cohort {

// Thread-safe reference counting; the bytes themselves are not synchronised.
class COHORT_EXPORT Buffer {
 public:
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  size_t size() const { return size_; }
  MemorySpace space() const { return space_; }

  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    if (refs_.load(std::memory_order_acquire) == 1 ||
        (refs_.fetch_sub(1, std::memory_order_acq_rel) & ~kForeign) == 1) {
      Destroy();
    }
  }
  // True if the caller's reference is the only one, so that the caller may write in place. Never true for memory that a
  // program lent (Tensor::FromBlob): kernels read it and do not write into it.
  bool IsUnique() const { return refs_.load(std::memory_order_acquire) == 1; }

 protected:
  // A bit of refs_, above every count: the memory is the program's.
  static constexpr int32_t kForeign = 1 << 30;

  Buffer(void* data, size_t size, MemorySpace space) : data_(data), size_(size), space_(space) {}
  virtual ~Buffer() = default;
  // Gives the block back; called once, when the last reference goes.
  virtual void Destroy() = 0;

  void* data_;
  size_t size_;
  std::atomic<int32_t> refs_{1};
  MemorySpace space_;
};

class COHORT_EXPORT BufferPtr {
 public:
  BufferPtr() = default;
  // Takes over the reference that a new Buffer is born with.
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

// Thread-safe. Allocate never returns null; it throws ResourceExhaustedError with the size asked for.
class COHORT_EXPORT Allocator {
 public:
  virtual ~Allocator() = default;
  // `bytes` of uninitialised memory, aligned to 64; 0 bytes give a valid buffer of size 0.
  virtual BufferPtr Allocate(size_t bytes) = 0;
  virtual MemorySpace space() const = 0;
};

struct COHORT_EXPORT AllocatorStats {
  int64_t bytes_in_use = 0;  // of large blocks held by someone
  int64_t bytes_cached = 0;  // of large blocks kept for the next caller
  int64_t system_allocations = 0;
};

// Host memory. Blocks of 32 KiB and more are kept in size classes when they are freed, because a fresh page costs
// many times a warm one; smaller ones are the C library's. Lives as long as the process.
COHORT_EXPORT Allocator& HostAllocator();
COHORT_EXPORT AllocatorStats HostAllocatorStats();
// Gives every cached block back to the system.
COHORT_EXPORT void TrimHostAllocator();

}  // namespace cohort
