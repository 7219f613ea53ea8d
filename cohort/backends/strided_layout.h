// StridedLayout: the regular positions between which a copy moves elements, for the kernels of all backends that
// transpose, slice, pad, tile, broadcast and reverse. Internal to backends/.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "cohort/core/shape.h"

namespace cohort {

// The dimensions of a copy from the outermost to the innermost. Each dimension has the step in elements from one index
// to the next, in the source (`from`) and in the target (`to`). A source step of 0 repeats an element. Neighbours that
// can be copied as one dimension are merged, and dimensions of size 1 are dropped.
class StridedLayout {
 public:
  static constexpr size_t kMaxDims = 2 * Shape::kMaxRank;
  struct Dim {
    int64_t size;
    int64_t from;
    int64_t to;
  };

  // Adds a dimension inside of those that were added before.
  void Add(int64_t size, int64_t from, int64_t to) {
    elements_ *= size;
    if (size == 1) return;
    if (rank_ > 0) {
      Dim& last = dims_[rank_ - 1];
      if (last.from == size * from && last.to == size * to) {
        last = {last.size * size, from, to};
        return;
      }
    }
    dims_[rank_++] = {size, from, to};
  }
  int64_t elements() const { return elements_; }
  size_t rank() const { return rank_; }
  const Dim& dim(size_t i) const { return dims_[i]; }

  // If the target is contiguous along the last dimension and the source along another one, and both dimensions have at
  // least kTile elements, copying in square tiles is faster. In this case, moves the source's contiguous dimension to
  // the place directly before the last dimension and returns true. Otherwise changes nothing and returns false.
  bool PrepareTiles() {
    if (rank_ < 2 || dims_[rank_ - 1].from == 1 || dims_[rank_ - 1].to != 1 || dims_[rank_ - 1].size < kTile)
      return false;
    for (size_t i = 0; i + 1 < rank_; ++i) {
      if (dims_[i].from != 1 || dims_[i].size < kTile) continue;
      std::rotate(dims_.begin() + static_cast<std::ptrdiff_t>(i), dims_.begin() + static_cast<std::ptrdiff_t>(i + 1),
                  dims_.begin() + static_cast<std::ptrdiff_t>(rank_ - 1));
      return true;
    }
    return false;
  }
  static constexpr int64_t kTile = 16;

 private:
  size_t rank_ = 0;
  int64_t elements_ = 1;
  std::array<Dim, kMaxDims> dims_;
};

// Returns the steps in elements from one index to the next of each dimension, for a dense row-major tensor.
inline std::array<int64_t, Shape::kMaxRank> DenseStrides(const Shape& shape) {
  std::array<int64_t, Shape::kMaxRank> strides{};
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = stride;
    stride *= shape.dim(i);
  }
  return strides;
}

}  // namespace cohort
