#include "cohort/backends/test/test_memory.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace cohort {
namespace {

// An address with this bit changed is not valid in a process: on x86-64 it is not canonical, and on AArch64 it is in
// the kernel's half. (AArch64 would ignore the top byte.)
constexpr uintptr_t kTag = uintptr_t{1} << 55;
constexpr std::align_val_t kAlignment{64};
constexpr size_t kSmallestBlock = 64;

void* Tagged(const void* address) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) ^ kTag);  // NOLINT(performance-no-int-to-ptr)
}

class BorrowedBuffer final : public Buffer {
 public:
  BorrowedBuffer(void* data, size_t bytes) : Buffer(data, bytes, MemorySpace::Host()) {}

 private:
  void Destroy() override { delete this; }
};

}  // namespace

class TestMemory::TaggedBuffer final : public Buffer {
 public:
  TaggedBuffer(std::shared_ptr<TestMemory> memory, Block block, size_t bytes)
      : Buffer(Tagged(block.data), bytes, memory->space()), memory_(std::move(memory)), block_(block) {}

 private:
  void Destroy() override {
    memory_->Free(block_);
    delete this;
  }
  std::shared_ptr<TestMemory> memory_;
  Block block_;
};

TestMemory::~TestMemory() {
  for (const auto& [capacity, blocks] : free_) {
    for (void* block : blocks) ::operator delete(block, kAlignment);
  }
}

BufferPtr TestMemory::Allocate(size_t bytes) {
  CheckOutsideOfTestCallback("Allocate");
  return BufferPtr::Adopt(new TaggedBuffer(shared_from_this(), Take(bytes), bytes));
}

TestMemory::Block TestMemory::Take(size_t bytes) {
  const size_t capacity = std::bit_ceil(std::max(bytes, kSmallestBlock));
  MutexLock lock(mu_);
  bytes_in_use_ += capacity;
  std::vector<void*>& blocks = free_[capacity];
  if (!blocks.empty()) {
    void* block = blocks.back();
    blocks.pop_back();
    return {block, capacity};
  }
  void* block = ::operator new(capacity, kAlignment);
  std::memset(block, kTestPoison, capacity);
  return {block, capacity};
}

void TestMemory::Free(Block block) {
  // The work keeps the memory: the stream may run it after the last buffer is gone.
  const auto poison = [block, memory = shared_from_this()] { std::memset(block.data, kTestPoison, block.capacity); };
  MutexLock lock(mu_);
  // The lock is held, so that no thread gets the block before its poison is enqueued.
  compute_ == nullptr ? poison() : compute_->Enqueue(poison);
  bytes_in_use_ -= block.capacity;
  free_[block.capacity].push_back(block.data);
}

void TestMemory::Detach() {
  MutexLock lock(mu_);
  compute_ = nullptr;
}

size_t TestMemory::bytes_in_use() const {
  MutexLock lock(mu_);
  return bytes_in_use_;
}

void* TrueAddress(const Tensor& value) { return Tagged(value.raw_data()); }

Tensor BorrowedView(DType dtype, const Shape& shape, void* data) {
  const size_t bytes = static_cast<size_t>(shape.num_elements()) * DTypeSize(dtype);
  return Tensor(dtype, shape, BufferPtr::Adopt(new BorrowedBuffer(data, bytes)), 0);
}

}  // namespace cohort
