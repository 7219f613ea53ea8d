#include "cohort/ops/strided_slice_spec.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::ops {
namespace {

using OptionalIndices = std::optional<std::vector<int64_t>>;

bool HasBit(int64_t mask, size_t i) { return i < 63 && ((mask >> i) & 1) != 0; }

// How many dimensions of the input the ellipsis (written or understood at the end) stands for.
int EllipsisLength(int rank, size_t length, const StridedSliceMasks& masks) {
  int taken = 0;
  int ellipses = 0;
  for (size_t i = 0; i < length; ++i) {
    if (HasBit(masks.ellipsis_mask, i)) {
      ++ellipses;
    } else if (!HasBit(masks.new_axis_mask, i)) {
      ++taken;
    }
  }
  if (ellipses > 1) throw InvalidArgumentError("Multiple ellipses in slice spec not allowed");
  if (taken > rank) throw InvalidArgumentError(StrCat("Too many indices: ", taken, " for a tensor of rank ", rank));
  return rank - taken;
}

// Bound of a slice within a dimension, as Python clamps it.
int64_t Clamp(int64_t bound, int64_t dim, int64_t stride) {
  if (bound < 0) bound += dim;
  return stride > 0 ? std::clamp<int64_t>(bound, 0, dim) : std::clamp<int64_t>(bound, -1, dim - 1);
}

class Resolver {
 public:
  Resolver(const Shape& input, const OptionalIndices& begin, const OptionalIndices& end,
           const std::vector<int64_t>& strides, const StridedSliceMasks& masks)
      : input_(input), begin_(begin), end_(end), strides_(strides), masks_(masks) {}

  StridedSliceSpec Run() {
    const int ellipsis = EllipsisLength(input_.rank(), strides_.size(), masks_);
    bool written = false;
    for (size_t i = 0; i < strides_.size(); ++i) {
      if (HasBit(masks_.ellipsis_mask, i)) {
        TakeWhole(ellipsis);
        written = true;
      } else if (HasBit(masks_.new_axis_mask, i)) {
        spec_.output.AddDim(1);
      } else if (HasBit(masks_.shrink_axis_mask, i)) {
        TakeOne(i);
      } else {
        TakeRange(i);
      }
    }
    if (!written) TakeWhole(ellipsis);
    return std::move(spec_);
  }

 private:
  int64_t dim() const { return input_.dim(static_cast<int>(spec_.begin.size())); }

  void Push(int64_t begin, int64_t stride, int64_t count) {
    spec_.begin.push_back(begin);
    spec_.stride.push_back(stride);
    spec_.count.push_back(count);
  }

  void TakeWhole(int dims) {
    for (int i = 0; i < dims; ++i) {
      spec_.output.AddDim(dim());
      Push(0, 1, dim());
    }
  }

  void TakeOne(size_t i) {
    const int64_t size = dim();
    int64_t at = 0;
    if (strides_[i] <= 0) throw InvalidArgumentError("only stride 1 allowed on non-range indexing.");
    if (begin_ && size >= 0) {
      at = HasBit(masks_.begin_mask, i) ? 0 : (*begin_)[i];
      if (at < -size || at >= size) {
        throw InvalidArgumentError(
            StrCat("slice index ", at, " of dimension ", spec_.begin.size(), " out of bounds of ", input_));
      }
      if (at < 0) at += size;
    }
    Push(at, 1, 1);
  }

  void TakeRange(size_t i) {
    const int64_t stride = strides_[i];
    const int64_t size = dim();
    if (stride == 0) throw InvalidArgumentError(StrCat("strides[", i, "] must be non-zero"));
    const bool open_begin = HasBit(masks_.begin_mask, i), open_end = HasBit(masks_.end_mask, i);
    if ((!begin_ && !open_begin) || (!end_ && !open_end) || size < 0) return TakeUnknown(i, open_begin && open_end);
    const int64_t from = open_begin ? (stride > 0 ? 0 : size - 1) : Clamp((*begin_)[i], size, stride);
    const int64_t to = open_end ? (stride > 0 ? size : -1) : Clamp((*end_)[i], size, stride);
    const int64_t span = to - from;
    const int64_t count = span == 0 || (span < 0) != (stride < 0) ? 0 : 1 + (span - (stride > 0 ? 1 : -1)) / stride;
    spec_.output.AddDim(count);
    // A stride that leads from no element to another may be any number, so that sums with it could overflow.
    Push(count > 0 ? from : 0, count > 1 ? stride : 1, count);
  }

  // The dimension or a bound is not known. x[a:b] with non-negative a <= b of an unknown dimension is not b -
  // a long for sure, so nothing is concluded.
  void TakeUnknown(size_t i, bool whole) {
    const int64_t count = whole && strides_[i] == 1 ? dim() : -1;
    spec_.output.AddDim(count);
    Push(0, strides_[i], count);
  }

  const Shape& input_;
  const OptionalIndices& begin_;
  const OptionalIndices& end_;
  const std::vector<int64_t>& strides_;
  const StridedSliceMasks& masks_;
  StridedSliceSpec spec_;
};

}  // namespace

StridedSliceSpec ResolveStridedSlice(const Shape& input, const OptionalIndices& begin, const OptionalIndices& end,
                                     const std::vector<int64_t>& strides, const StridedSliceMasks& masks) {
  if ((begin && begin->size() != strides.size()) || (end && end->size() != strides.size())) {
    throw InvalidArgumentError(StrCat("begin, end and strides must have one length; got ", begin ? begin->size() : 0,
                                      ", ", end ? end->size() : 0, " and ", strides.size()));
  }
  return Resolver(input, begin, end, strides, masks).Run();
}

}  // namespace cohort::ops
