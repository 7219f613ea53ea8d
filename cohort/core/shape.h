// Shape: the dimensions of a tensor. The shape of a Tensor is always fully defined. The shape of a value in a graph may
// have unknown dimensions (-1), or its rank may be unknown too.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "cohort/core/export.h"

namespace cohort {

// The dimensions of a tensor or of a value in a graph. A value type. Const methods are thread-safe. dim, set_dim,
// AddDim and Sub require that the rank is known. dim, set_dim and Sub also require that the shape has the dimensions to
// which their arguments refer.
class COHORT_EXPORT Shape {
 public:
  static constexpr int kMaxRank = 8;
  static constexpr int64_t kUnknownDim = -1;

  Shape() = default;  // a scalar
  // Throws InvalidArgumentError if there are more than kMaxRank dimensions, or if a dimension is less than -1.
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);
  explicit Shape(const std::vector<int64_t>& dims) : Shape(std::span<const int64_t>(dims)) {}
  static Shape UnknownRank() {
    Shape shape;
    shape.rank_ = -1;
    return shape;
  }
  // Returns a shape of `rank` dimensions that are all unknown.
  static Shape UnknownDims(int rank);

  bool has_rank() const { return rank_ >= 0; }
  int rank() const { return rank_; }  // -1 if the rank is unknown
  int64_t dim(int i) const { return dims_[static_cast<size_t>(i)]; }
  void set_dim(int i, int64_t value) { dims_[static_cast<size_t>(i)] = value; }
  // Adds a last dimension. Throws InvalidArgumentError if there are kMaxRank dimensions already, or if `value` is less
  // than -1.
  void AddDim(int64_t value);
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_ < 0 ? 0 : rank_)}; }
  bool IsFullyDefined() const;
  bool IsScalar() const { return rank_ == 0; }
  // Returns the product of the dimensions, or -1 if a dimension or the rank is unknown. Throws InvalidArgumentError if
  // the product is 2^63 or more.
  int64_t num_elements() const;

  // Returns whether a tensor could have both shapes: no known dimension or rank differs.
  bool IsCompatibleWith(const Shape& other) const;
  // Returns the shape in which a dimension is known if this shape or `other` knows it. Throws InvalidArgumentError if
  // the two shapes are not compatible.
  Shape MergedWith(const Shape& other) const;
  // Returns a shape that describes all tensors of both shapes: [2,3] and [4,3] give [?,3]. Different ranks give an
  // unknown rank.
  Shape CommonWith(const Shape& other) const;
  // Returns the shape that consists of the dimensions [begin, end).
  Shape Sub(int begin, int end) const;
  // Returns the dimensions of this shape followed by those of `tail`, or UnknownRank if one of the ranks is unknown.
  // Throws InvalidArgumentError if these are more than kMaxRank dimensions.
  Shape Concat(const Shape& tail) const;

  // Returns "[2,3]", "[?,10]", "<unknown>" or, for a scalar, "[]".
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b);
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape);

 private:
  int8_t rank_ = 0;
  std::array<int64_t, kMaxRank> dims_{};
};
COHORT_EXPORT bool operator==(const Shape& a, const Shape& b);
COHORT_EXPORT std::ostream& operator<<(std::ostream& out, const Shape& shape);

// Returns the shape to which both shapes are broadcast, by numpy's rules. Unknown dimensions and ranks are allowed.
// Throws InvalidArgumentError "Incompatible shapes: [2,3] vs. [4]" if the rules do not allow it.
COHORT_EXPORT Shape BroadcastShapes(const Shape& a, const Shape& b);

}  // namespace cohort
