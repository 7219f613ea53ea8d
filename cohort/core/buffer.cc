// The allocator of host memory. A block below 32 KiB comes from malloc and goes back to it. A larger block has a size
// class, and a freed block waits in the list of its class for the next caller. Two kinds of blocks have no class: whole
// blocks (AllocateWhole) wait in a list of their own, and passing blocks (AllocatePassing) come from mmap and go back
// to the system. The header of a block (HostBuffer) lies in the block, before the data.
#include "cohort/core/buffer.h"

#include <sys/mman.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <new>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/host_blocks.h"
#include "cohort/core/mutex.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kCachedFrom = 32 * 1024;
constexpr int kStepsPerDoubling = 8;  // at most 12.5% of a block is slack
constexpr size_t kClasses = 64 * kStepsPerDoubling;
// Values of class_index_ for blocks that have no class: whole blocks and passing blocks.
constexpr size_t kWhole = kClasses;
constexpr size_t kPassing = kClasses + 1;

struct SizeClass {
  size_t index;
  size_t bytes;
};

// Returns the smallest class that holds `bytes`. The classes have the sizes 2^k * (8 + j) / 8.
SizeClass ClassOf(size_t bytes) {
  const size_t octave = static_cast<size_t>(std::bit_width(bytes - 1)) - 1;  // 2^octave < bytes <= 2^(octave+1)
  const size_t base = size_t{1} << octave;
  const size_t step = base / kStepsPerDoubling;
  const size_t j = (bytes - base + step - 1) / step;  // 1..8
  return {octave * kStepsPerDoubling + j - 1, base + j * step};
}

// Asks the system for huge pages. With them, a step that uses hundreds of MB is a few per cent faster. If the system
// has none, nothing changes.
void PreferHugePages(void* block, size_t bytes) {
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  const auto address = reinterpret_cast<uintptr_t>(block);
  const uintptr_t begin = (address + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = (address + bytes) / kHugePage * kHugePage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

class CachingHostAllocator;

// A block: the header, and directly after it the data, aligned to 64 bytes.
class HostBuffer final : public Buffer {
 public:
  HostBuffer(void* data, size_t size, void* block, size_t class_index, size_t class_bytes, CachingHostAllocator* owner)
      : Buffer(data, size, MemorySpace::Host()),
        block_(block),
        class_index_(class_index),
        class_bytes_(class_bytes),
        owner_(owner) {}

 private:
  void Destroy() override;

  void* block_;
  size_t class_index_;  // or kWhole, kPassing
  size_t class_bytes_;
  CachingHostAllocator* owner_;  // null for a small block, which malloc owns
};

constexpr size_t kOverhead = sizeof(HostBuffer) + kAlignment;

class CachingHostAllocator final : public Allocator {
 public:
  MemorySpace space() const override { return MemorySpace::Host(); }

  BufferPtr Allocate(size_t bytes) override {
    if (bytes < kCachedFrom) return Place(NewBlock(bytes), bytes, 0, bytes, nullptr);
    if (bytes > (size_t{1} << 60)) Fail(bytes);
    const SizeClass size_class = ClassOf(bytes);
    void* block = Pop(size_class);
    if (block == nullptr) block = NewBlock(size_class.bytes);
    return Place(block, bytes, size_class.index, size_class.bytes, this);
  }

  void GiveBack(void* block, size_t class_index, size_t class_bytes) {
    if (class_index == kPassing) munmap(block, class_bytes);
    MutexLock lock(mu_);
    stats_.bytes_in_use -= static_cast<int64_t>(class_bytes);
    if (class_index == kPassing) return;
    stats_.bytes_cached += static_cast<int64_t>(class_bytes);
    if (class_index == kWhole) {
      waiting_.push_back({block, class_bytes});
    } else {
      free_[class_index].push_back(block);
    }
  }

  AllocatorStats stats() {
    MutexLock lock(mu_);
    return stats_;
  }

  BufferPtr AllocateWhole(size_t bytes, std::span<const size_t> replaces) {
    WholeBlock whole = TakeWaiting(bytes, replaces);
    if (whole.block == nullptr) {
      whole = {NewBlock(bytes), bytes};
      PreferHugePages(whole.block, bytes);
      MutexLock lock(mu_);
      ++stats_.system_allocations;
      stats_.bytes_in_use += static_cast<int64_t>(bytes);
    }
    return Place(whole.block, bytes, kWhole, whole.bytes, this);
  }

  BufferPtr AllocatePassing(size_t bytes) {
    if (bytes < kCachedFrom) return Allocate(bytes);
    if (bytes > (size_t{1} << 60)) Fail(bytes);
    const size_t whole = bytes + kOverhead;
    void* block = Map(whole);
    if (block == nullptr) {
      TrimAll();
      block = Map(whole);
    }
    if (block == nullptr) Fail(bytes);
    PreferHugePages(block, whole);
    MutexLock lock(mu_);
    ++stats_.system_allocations;
    stats_.bytes_in_use += static_cast<int64_t>(whole);
    return Place(block, bytes, kPassing, whole, this);
  }

  void TrimAll() {
    MutexLock lock(mu_);
    for (auto& blocks : free_) FreeAll(blocks);
    for (const WholeBlock& whole : waiting_) std::free(whole.block);
    waiting_.clear();
    stats_.bytes_cached = 0;
  }

 private:
  struct WholeBlock {
    void* block = nullptr;
    size_t bytes = 0;
  };

  // Returns the smallest waiting block that is large enough and not more than four times too large. Returns a null
  // block if there is none; then it also frees the largest waiting block that is too small.
  WholeBlock TakeWaiting(size_t bytes, std::span<const size_t> replaces) {
    MutexLock lock(mu_);
    for (const size_t size : replaces) {
      if (size < kCachedFrom) continue;
      const SizeClass size_class = ClassOf(size);
      auto& blocks = free_[size_class.index];
      stats_.bytes_cached -= static_cast<int64_t>(blocks.size() * size_class.bytes);
      FreeAll(blocks);
    }
    const auto none = waiting_.end();
    auto fit = none;
    auto small = none;
    for (auto it = waiting_.begin(); it != none; ++it) {
      if (it->bytes < bytes) {
        if (small == none || it->bytes > small->bytes) small = it;
      } else if (it->bytes / 4 <= bytes && (fit == none || it->bytes < fit->bytes)) {
        fit = it;
      }
    }
    WholeBlock found;
    if (fit != none) {
      found = *fit;
      waiting_.erase(fit);
      stats_.bytes_cached -= static_cast<int64_t>(found.bytes);
      stats_.bytes_in_use += static_cast<int64_t>(found.bytes);
      return found;
    }
    if (small != none) {
      std::free(small->block);
      stats_.bytes_cached -= static_cast<int64_t>(small->bytes);
      waiting_.erase(small);
    }
    return found;
  }

  static void FreeAll(std::vector<void*>& blocks) {
    for (void* block : blocks) std::free(block);
    blocks.clear();
  }

  void* Pop(const SizeClass& size_class) {
    MutexLock lock(mu_);
    const auto bytes = static_cast<int64_t>(size_class.bytes);
    stats_.bytes_in_use += bytes;
    auto& blocks = free_[size_class.index];
    if (blocks.empty()) {
      ++stats_.system_allocations;
      return nullptr;
    }
    void* block = blocks.back();
    blocks.pop_back();
    stats_.bytes_cached -= bytes;
    return block;
  }

  void* NewBlock(size_t bytes) {
    void* block = std::malloc(bytes + kOverhead);
    if (block == nullptr) {
      TrimAll();
      block = std::malloc(bytes + kOverhead);
    }
    if (block == nullptr) Fail(bytes);
    return block;
  }

  static void* Map(size_t bytes) {
    void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? nullptr : block;
  }

  static BufferPtr Place(void* block, size_t bytes, size_t class_index, size_t class_bytes,
                         CachingHostAllocator* owner) {
    const auto address = reinterpret_cast<uintptr_t>(block) + sizeof(HostBuffer) + kAlignment - 1;
    auto* data = reinterpret_cast<char*>(address / kAlignment * kAlignment);
    void* header = data - sizeof(HostBuffer);
    return BufferPtr::Adopt(new (header) HostBuffer(data, bytes, block, class_index, class_bytes, owner));
  }

  [[noreturn]] static void Fail(size_t bytes) {
    throw ResourceExhaustedError(StrCat("[allocator] out of host memory: ", bytes, " bytes could not be had"));
  }

  Mutex mu_;
  std::array<std::vector<void*>, kClasses> free_ COHORT_GUARDED_BY(mu_);
  std::vector<WholeBlock> waiting_ COHORT_GUARDED_BY(mu_);
  AllocatorStats stats_ COHORT_GUARDED_BY(mu_);
};

void HostBuffer::Destroy() {
  void* block = block_;
  const size_t class_index = class_index_;
  const size_t class_bytes = class_bytes_;
  CachingHostAllocator* owner = owner_;
  this->~HostBuffer();
  if (owner == nullptr) {
    std::free(block);
  } else {
    owner->GiveBack(block, class_index, class_bytes);
  }
}

CachingHostAllocator& TheHostAllocator() {
  static auto* const allocator = new CachingHostAllocator;  // outlives every static that holds a tensor
  return *allocator;
}

}  // namespace

Allocator& HostAllocator() { return TheHostAllocator(); }
AllocatorStats HostAllocatorStats() { return TheHostAllocator().stats(); }
BufferPtr AllocateWholeHostBlock(size_t bytes, std::span<const size_t> replaces) {
  return TheHostAllocator().AllocateWhole(bytes, replaces);
}
BufferPtr AllocatePassingHostBlock(size_t bytes) { return TheHostAllocator().AllocatePassing(bytes); }
void TrimHostAllocator() { TheHostAllocator().TrimAll(); }

}  // namespace cohort
