// Shape: the dimensions of a tensor. While a graph is built a dimension (-1) or the whole rank may be unknown;
// the shape of a Tensor is always fully defined.
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

class COHORT_EXPORT Shape {
 public:
  static constexpr int kMaxRank = 8;
  static constexpr int64_t kUnknownDim = -1;

  Shape() = default;  // a scalar
  // Throws InvalidArgumentError for more than kMaxRank dimensions or one below -1.
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);
  explicit Shape(const std::vector<int64_t>& dims) : Shape(std::span<const int64_t>(dims)) {}
  static Shape UnknownRank() {
    Shape shape;
    shape.rank_ = -1;
    return shape;
  }
  // `rank` dimensions, all unknown.
  static Shape UnknownDims(int rank);

  bool has_rank() const { return rank_ >= 0; }
  int rank() const { return rank_; }  // -1 when unknown
  int64_t dim(int i) const { return dims_[static_cast<size_t>(i)]; }
  void set_dim(int i, int64_t value) { dims_[static_cast<size_t>(i)] = value; }
  // Throws InvalidArgumentError past kMaxRank.
  void AddDim(int64_t value);
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_ < 0 ? 0 : rank_)}; }
  bool IsFullyDefined() const;
  bool IsScalar() const { return rank_ == 0; }
  // Product of the dimensions; -1 if one is unknown.
  int64_t num_elements() const;

  // Whether some tensor could have both shapes.
  bool IsCompatibleWith(const Shape& other) const;
  // The more specific of two compatible shapes. Throws InvalidArgumentError where they are not compatible.
  Shape MergedWith(const Shape& other) const;
  // The most specific shape that both are instances of: [2,3] and [4,3] give [?,3], different ranks an unknown one.
  Shape CommonWith(const Shape& other) const;
  // Dimensions [begin, end).
  Shape Sub(int begin, int end) const;
  Shape Concat(const Shape& tail) const;

  // "[2,3]", "[?,10]", "<unknown>", "[]" for a scalar.
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b);
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape);

 private:
  int8_t rank_ = 0;
  std::array<int64_t, kMaxRank> dims_{};
};
COHORT_EXPORT bool operator==(const Shape& a, const Shape& b);
COHORT_EXPORT std::ostream& operator<<(std::ostream& out, const Shape& shape);

// Broadcasting of two shapes by numpy's rules, unknown dimensions allowed. Throws InvalidArgumentError
// "Incompatible shapes: [2,3] vs. [4]".
COHORT_EXPORT Shape BroadcastShapes(const Shape& a, const Shape& b);

}  // namespace cohort
