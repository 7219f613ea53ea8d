// PinnedPool: host memory that a card copies from and to while other work runs.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "cohort/backends/cuda/driver.h"
#include "cohort/core/mutex.h"
#include "cohort/core/tensor.h"

namespace cohort::cuda {

// Lends blocks of pinned memory, and keeps them for the next time. There is one for each driver (Of). Thread-safe.
class PinnedPool : public std::enable_shared_from_this<PinnedPool> {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 30;  // lent and kept

  // Returns the pool of the driver. It exists as long as somebody holds it.
  static std::shared_ptr<PinnedPool> Of(Driver& driver);
  // The pools of tests may have less memory.
  explicit PinnedPool(Driver& driver, size_t most_bytes = kMostBytes) : driver_(driver), most_bytes_(most_bytes) {}
  ~PinnedPool();

  // Returns a tensor in host memory for a copy from the card. Its bytes are pinned, unless the driver has no more
  // pinned memory or the pool has lent and kept most_bytes.
  Tensor NewTensor(int card, DType dtype, const Shape& shape);
  // Returns `value` if it lies in memory of this pool, else a copy of it that does, as far as there is pinned memory.
  // The caller holds the result until the card has read it.
  Tensor Pinned(int card, const Tensor& value);
  // Returns whether `value` lies in memory of this pool.
  bool Has(const Tensor& value) const;
  // Returns how many bytes are lent and kept now.
  size_t bytes() const;

 private:
  class PinnedBuffer;
  // Returns null if there is none.
  void* Take(int card, size_t bytes, size_t* capacity);
  void Give(void* data, size_t capacity);

  Driver& driver_;
  const size_t most_bytes_;
  mutable Mutex mu_;
  std::map<size_t, std::vector<void*>> free_ COHORT_GUARDED_BY(mu_);  // by capacity
  struct Block {
    size_t capacity;
    int card;  // that was asked for it; all cards may use it
  };
  std::map<const void*, Block> blocks_ COHORT_GUARDED_BY(mu_);  // all, by address
  size_t bytes_ COHORT_GUARDED_BY(mu_) = 0;
};

}  // namespace cohort::cuda
