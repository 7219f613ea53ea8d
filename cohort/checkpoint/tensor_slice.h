// TensorSlice: a box out of a tensor. Partitioned variables are stored as such boxes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/shape.h"

namespace cohort {

struct TensorSlice {
  static constexpr int64_t kWhole = -1;
  struct Extent {
    int64_t start = 0;
    int64_t length = kWhole;  // kWhole: the whole dimension, start is 0
    friend bool operator==(const Extent&, const Extent&) = default;
  };
  std::vector<Extent> extents;  // one a dimension

  // Every dimension whole.
  static TensorSlice Whole(int rank) { return {std::vector<Extent>(static_cast<size_t>(rank))}; }
  // Rows [start, start + length) of axis 0 of a tensor of shape `full`, all dimensions explicit as
  // TensorFlow's Saver writes them.
  static TensorSlice Rows(const Shape& full, int64_t start, int64_t length);
  // "5,5:0,3": start,length of each dimension, "-" for a whole one. Throws InvalidArgumentError.
  static TensorSlice Parse(std::string_view text);
  std::string ToString() const;

  // With lengths in place of kWhole. Throws InvalidArgumentError where the box does not lie in `full`.
  TensorSlice ResolvedIn(const Shape& full) const;
  // The box's own shape. Throws as ResolvedIn.
  Shape ShapeIn(const Shape& full) const;
  // Whether the box is all of `full`. Throws as ResolvedIn.
  bool IsWholeOf(const Shape& full) const { return ShapeIn(full) == full; }
  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;
};

// "10 3 5,5:0,3": the full shape and the slice, as attributes of save and restore ops carry it; "" gives
// nothing (the slice has no extents and the shape no rank). Throws InvalidArgumentError.
std::pair<Shape, TensorSlice> ParseShapeAndSlice(std::string_view text);

// The key of a part in the index of a checkpoint; it begins with a zero byte, as no name does.
std::string SliceKey(std::string_view name, const TensorSlice& slice);

// The elements that two boxes of one tensor share, as contiguous runs in both, in row-major order.
class SliceOverlap {
 public:
  struct Run {
    int64_t from;    // first element within `from`'s box
    int64_t to;      // first element within `to`'s box
    int64_t length;  // elements
  };
  // Both resolved and of one rank.
  SliceOverlap(const TensorSlice& from, const TensorSlice& to);
  // Elements shared.
  int64_t size() const { return size_; }
  // False after the last run.
  bool Next(Run* run);

 private:
  struct Dim {
    int64_t count;  // indices of this dimension that are shared
    int64_t from_stride, to_stride;
    int64_t index = 0;
  };
  std::vector<Dim> outer_;  // dimensions to step through
  int64_t from_ = 0, to_ = 0;
  int64_t run_ = 1;
  int64_t size_ = 1;
  bool done_ = false;
};

}  // namespace cohort
