#include "cohort/core/shape.h"

#include <algorithm>
#include <ostream>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

// Returns the product of `dims`, which does not fit into 64 bits unless another dimension is 0 or unknown. Throws
// InvalidArgumentError if it does not fit. It is apart from num_elements, which is called in each step.
int64_t ProductOfLargeDims(const Shape& shape) {
  if (!shape.IsFullyDefined()) return -1;
  for (const int64_t dim : shape.dims()) {
    if (dim == 0) return 0;
  }
  throw InvalidArgumentError(StrCat("[shape] expected a shape of fewer than 2^63 elements; got ", shape));
}

}  // namespace

Shape::Shape(std::span<const int64_t> dims) {
  for (const int64_t dim : dims) AddDim(dim);
}

Shape Shape::UnknownDims(int rank) {
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.AddDim(kUnknownDim);
  return shape;
}

void Shape::AddDim(int64_t value) {
  if (value < kUnknownDim) throw InvalidArgumentError(StrCat("[shape] a dimension must be >= 0 or -1; got ", value));
  if (rank_ >= kMaxRank) {
    throw InvalidArgumentError(StrCat("[shape] at most ", kMaxRank, " dimensions are supported; one more for ", *this));
  }
  dims_[static_cast<size_t>(rank_++)] = value;
}

bool Shape::IsFullyDefined() const {
  if (rank_ < 0) return false;
  for (int i = 0; i < rank_; ++i) {
    if (dims_[static_cast<size_t>(i)] < 0) return false;
  }
  return true;
}

int64_t Shape::num_elements() const {
  if (rank_ < 0) return -1;
  int64_t product = 1;
  for (int i = 0; i < rank_; ++i) {
    const int64_t dim = dims_[static_cast<size_t>(i)];
    if (dim < 0) return -1;
    if (__builtin_mul_overflow(product, dim, &product)) return ProductOfLargeDims(*this);
  }
  return product;
}

bool Shape::IsCompatibleWith(const Shape& other) const {
  if (rank_ < 0 || other.rank_ < 0) return true;
  if (rank_ != other.rank_) return false;
  for (int i = 0; i < rank_; ++i) {
    if (dim(i) >= 0 && other.dim(i) >= 0 && dim(i) != other.dim(i)) return false;
  }
  return true;
}

Shape Shape::MergedWith(const Shape& other) const {
  if (!IsCompatibleWith(other)) {
    throw InvalidArgumentError(StrCat("Shapes ", *this, " and ", other, " are not compatible"));
  }
  if (rank_ < 0) return other;
  if (other.rank_ < 0) return *this;
  Shape merged = *this;
  for (int i = 0; i < rank_; ++i) {
    if (merged.dim(i) < 0) merged.set_dim(i, other.dim(i));
  }
  return merged;
}

Shape Shape::CommonWith(const Shape& other) const {
  if (rank_ < 0 || rank_ != other.rank_) return UnknownRank();
  Shape common = *this;
  for (int i = 0; i < rank_; ++i) {
    if (dim(i) != other.dim(i)) common.set_dim(i, kUnknownDim);
  }
  return common;
}

Shape Shape::Sub(int begin, int end) const {
  return Shape(dims().subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
}

Shape Shape::Concat(const Shape& tail) const {
  if (rank_ < 0 || tail.rank_ < 0) return UnknownRank();
  Shape joined = *this;
  for (const int64_t dim : tail.dims()) joined.AddDim(dim);
  return joined;
}

std::string Shape::ToString() const {
  if (rank_ < 0) return "<unknown>";
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i > 0) text += ',';
    text += dim(i) < 0 ? "?" : std::to_string(dim(i));
  }
  return text + "]";
}

bool operator==(const Shape& a, const Shape& b) {
  return a.rank_ == b.rank_ && std::equal(a.dims().begin(), a.dims().end(), b.dims().begin());
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.ToString(); }

Shape BroadcastShapes(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return Shape::UnknownRank();
  const int rank = std::max(a.rank(), b.rank());
  Shape result = Shape::UnknownDims(rank);
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank());
    const int ib = i - (rank - b.rank());
    const int64_t da = ia < 0 ? 1 : a.dim(ia);
    const int64_t db = ib < 0 ? 1 : b.dim(ib);
    if (da == db) {
      result.set_dim(i, da);
    } else if (da == 1) {
      result.set_dim(i, db);
    } else if (db == 1) {
      result.set_dim(i, da);
    } else if (da < 0 || db < 0) {
      result.set_dim(i, std::max(da, db));  // the known one is > 1, so it decides
    } else {
      throw InvalidArgumentError(StrCat("Incompatible shapes: ", a, " vs. ", b));
    }
  }
  return result;
}

}  // namespace cohort
