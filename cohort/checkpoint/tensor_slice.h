// TensorSlice: a box (a range of indices in each dimension) of a tensor. Partitioned variables are stored as such
// boxes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/shape.h"

namespace cohort {

// A range of indices (an extent) in each dimension of a tensor. A plain value.
struct TensorSlice {
  static constexpr int64_t kWhole = -1;
  struct Extent {
    int64_t start = 0;
    int64_t length = kWhole;  // kWhole: the whole dimension; start is then 0
    friend bool operator==(const Extent&, const Extent&) = default;
  };
  std::vector<Extent> extents;  // one for each dimension

  // Returns the box that is the whole tensor.
  static TensorSlice Whole(int rank) { return {std::vector<Extent>(static_cast<size_t>(rank))}; }
  // Returns rows [start, start + length) of axis 0 of a tensor of shape `full`. In the result no length is kWhole,
  // because TensorFlow's Saver writes all lengths as numbers. Throws InvalidArgumentError if `full` is a scalar or does
  // not have these rows.
  static TensorSlice Rows(const Shape& full, int64_t start, int64_t length);
  // Parses "5,5:0,3": start,length of each dimension, or "-" for a whole dimension. Throws InvalidArgumentError for
  // other text.
  static TensorSlice Parse(std::string_view text);
  std::string ToString() const;

  // Returns the box with lengths in place of kWhole. Throws InvalidArgumentError if the box is not inside `full`.
  TensorSlice ResolvedIn(const Shape& full) const;
  // Returns the shape of the box. Throws as ResolvedIn does.
  Shape ShapeIn(const Shape& full) const;
  // Returns true if the box is all of `full`. Throws as ResolvedIn does.
  bool IsWholeOf(const Shape& full) const { return ShapeIn(full) == full; }
  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;
};

// Parses the text that save and restore ops use, such as "10 3 5,5:0,3": the full shape and the slice. For "", the
// rank of the shape is unknown and the slice has no extents. Throws InvalidArgumentError for other text, and if the
// slice is not inside the shape.
std::pair<Shape, TensorSlice> ParseShapeAndSlice(std::string_view text);

// Returns such a text.
std::string ShapeAndSlice(const Shape& full, const TensorSlice& slice);

// Returns the key of a part in a checkpoint's index. It begins with a zero byte, unlike the name of a tensor.
std::string SliceKey(std::string_view name, const TensorSlice& slice);

// Lists the elements that two boxes of one tensor share, as runs that are contiguous in both boxes, in row-major order.
// Not thread-safe.
class SliceOverlap {
 public:
  struct Run {
    int64_t from;    // index of the first element in the first box
    int64_t to;      // index of the first element in the second box
    int64_t length;  // number of elements
  };
  // Requires: both boxes are resolved and have the same rank.
  SliceOverlap(const TensorSlice& from, const TensorSlice& to);
  // Returns the number of shared elements.
  int64_t size() const { return size_; }
  // Sets *run to the next run. Returns false after the last run.
  bool Next(Run* run);

 private:
  struct Dim {
    int64_t count;  // how many indices of this dimension both boxes have
    int64_t from_stride, to_stride;
    int64_t index = 0;
  };
  std::vector<Dim> outer_;  // the dimensions that Next steps through, innermost first
  int64_t from_ = 0, to_ = 0;
  int64_t run_ = 1;
  int64_t size_ = 1;
  bool done_ = false;
};

}  // namespace cohort
