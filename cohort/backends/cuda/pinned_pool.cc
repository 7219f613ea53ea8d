#include "cohort/backends/cuda/pinned_pool.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

#include "cohort/backends/cuda/card_faults.h"
#include "cohort/core/error.h"

namespace cohort::cuda {
namespace {

constexpr size_t kSmallestBlock = 256;

}  // namespace

class PinnedPool::PinnedBuffer final : public Buffer {
 public:
  PinnedBuffer(std::shared_ptr<PinnedPool> pool, void* data, size_t capacity, size_t bytes)
      : Buffer(data, bytes, MemorySpace::Host()), pool_(std::move(pool)), capacity_(capacity) {}

 private:
  void Destroy() override {
    pool_->Give(data_, capacity_);
    delete this;
  }
  std::shared_ptr<PinnedPool> pool_;
  const size_t capacity_;
};

std::shared_ptr<PinnedPool> PinnedPool::Of(Driver& driver) {
  static Mutex mu;
  static auto* const pools = new std::map<int64_t, std::weak_ptr<PinnedPool>>;  // by the driver's id
  MutexLock lock(mu);
  std::weak_ptr<PinnedPool>& known = (*pools)[driver.id()];
  std::shared_ptr<PinnedPool> pool = known.lock();
  if (pool == nullptr) {
    pool = std::make_shared<PinnedPool>(driver);
    known = pool;
  }
  return pool;
}

PinnedPool::~PinnedPool() {
  if (IsForkedFromUser()) return;  // the memory is the parent's
  for (const auto& [data, block] : blocks_) {
    try {
      driver_.FreePinned(block.card, const_cast<void*>(data));
    } catch (const Error&) {
      return;  // the card has failed
    }
  }
}

void* PinnedPool::Take(int card, size_t bytes, size_t* capacity) {
  UseCards();
  *capacity = std::bit_ceil(std::max(bytes, kSmallestBlock));
  MutexLock lock(mu_);
  std::vector<void*>& blocks = free_[*capacity];
  if (!blocks.empty()) {
    void* data = blocks.back();
    blocks.pop_back();
    return data;
  }
  if (*capacity > most_bytes_ - std::min(most_bytes_, bytes_)) return nullptr;
  void* data = driver_.AllocatePinned(card, *capacity);
  if (data == nullptr) return nullptr;
  blocks_[data] = {*capacity, card};
  bytes_ += *capacity;
  return data;
}

void PinnedPool::Give(void* data, size_t capacity) {
  MutexLock lock(mu_);
  free_[capacity].push_back(data);
}

Tensor PinnedPool::NewTensor(int card, DType dtype, const Shape& shape) {
  const size_t bytes = static_cast<size_t>(shape.num_elements()) * DTypeSize(dtype);
  size_t capacity = 0;
  void* data = bytes == 0 ? nullptr : Take(card, bytes, &capacity);
  if (data == nullptr) return Tensor(dtype, shape);
  return Tensor(dtype, shape, BufferPtr::Adopt(new PinnedBuffer(shared_from_this(), data, capacity, bytes)), 0);
}

bool PinnedPool::Has(const Tensor& value) const {
  MutexLock lock(mu_);
  const auto after = blocks_.upper_bound(value.raw_data());
  if (after == blocks_.begin()) return false;
  const auto& [data, block] = *std::prev(after);
  return static_cast<const char*>(value.raw_data()) < static_cast<const char*>(data) + block.capacity;
}

Tensor PinnedPool::Pinned(int card, const Tensor& value) {
  if (Has(value)) return value;
  Tensor copy = NewTensor(card, value.dtype(), value.shape());
  if (value.bytes() > 0) std::memcpy(copy.raw_data(), value.raw_data(), value.bytes());
  return copy;
}

size_t PinnedPool::bytes() const {
  MutexLock lock(mu_);
  return bytes_;
}

}  // namespace cohort::cuda
