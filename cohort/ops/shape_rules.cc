#include "cohort/ops/shape_rules.h"

#include <algorithm>
#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {
namespace {

template <typename T>
int64_t LengthOfRange(T start, T limit, T delta) {
  if (delta == 0) throw InvalidArgumentError("Requires delta != 0");
  if (delta > 0 ? start > limit : start < limit) {
    throw InvalidArgumentError(StrCat("Requires start ", delta > 0 ? "<=" : ">=", " limit when delta ",
                                      delta > 0 ? "> 0" : "< 0", ": ", start, "/", limit));
  }
  const double length =
      std::ceil(std::abs((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta)));
  if (!(length < 1e15)) throw InvalidArgumentError(StrCat("a range of ", length, " elements is too long"));
  return static_cast<int64_t>(length);
}

}  // namespace

std::vector<Shape> UnchangedShape(ShapeContext& c) { return {c.input(0)}; }
std::vector<Shape> NoOutputs(ShapeContext&) { return {}; }
std::vector<Shape> ScalarShape(ShapeContext&) { return {Shape()}; }
std::vector<Shape> BroadcastShape(ShapeContext& c) { return {BroadcastShapes(c.input(0), c.input(1))}; }
std::vector<Shape> UnknownShapes(int count) {
  return std::vector<Shape>(static_cast<size_t>(count), Shape::UnknownRank());
}

std::vector<int64_t> IntegerValues(const Tensor& tensor) {
  if (tensor.dtype() == DType::kInt64) return tensor.ToVector<int64_t>();
  if (tensor.dtype() != DType::kInt32) {
    throw InvalidArgumentError(StrCat("expected an int32 or int64 tensor; got ", tensor.dtype(), tensor.shape()));
  }
  const int32_t* values = tensor.data<int32_t>();
  return std::vector<int64_t>(values, values + tensor.num_elements());
}

int64_t IntegerScalar(const Tensor& tensor, const char* what) {
  if (tensor.num_elements() == 1) {
    if (tensor.dtype() == DType::kInt32) return tensor.scalar<int32_t>();
    if (tensor.dtype() == DType::kInt64) return tensor.scalar<int64_t>();
  }
  throw InvalidArgumentError(StrCat(what, " must be an integer scalar; got ", tensor.dtype(), tensor.shape()));
}

int NormalizeAxis(int64_t axis, int rank, const char* what) {
  if (axis < -rank || axis >= rank) {
    throw InvalidArgumentError(
        StrCat(what, " ", axis, " is out of range for rank ", rank, ": expected [", -rank, ", ", rank, ")"));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<bool> AxisMask(const std::vector<int64_t>& axes, int rank) {
  std::vector<bool> mask(static_cast<size_t>(rank), false);
  for (const int64_t axis : axes) {
    const size_t i = static_cast<size_t>(NormalizeAxis(axis, rank));
    if (mask[i]) throw InvalidArgumentError(StrCat("axis ", axis, " is given twice"));
    mask[i] = true;
  }
  return mask;
}

Shape ReducedShape(const Shape& shape, const std::vector<bool>& reduced, bool keep_dims) {
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!reduced[static_cast<size_t>(i)]) {
      result.AddDim(shape.dim(i));
    } else if (keep_dims) {
      result.AddDim(1);
    }
  }
  return result;
}

std::optional<std::vector<int64_t>> KnownIntegers(const ShapeContext& c, int i) {
  const std::optional<Tensor> value = c.input_value(i);
  if (!value) return std::nullopt;
  return IntegerValues(*value);
}

std::optional<int64_t> KnownInteger(const ShapeContext& c, int i, const char* what) {
  const std::optional<Tensor> value = c.input_value(i);
  if (!value) return std::nullopt;
  return IntegerScalar(*value, what);
}

bool CanBroadcast(const Shape& a, const Shape& b) {
  for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
    const int64_t da = a.dim(a.rank() - i), db = b.dim(b.rank() - i);
    if (da != db && da != 1 && db != 1) return false;
  }
  return true;
}

int64_t RangeLength(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  const auto length = [&]<typename T>(T) {
    return LengthOfRange<T>(start.scalar<T>(), limit.scalar<T>(), delta.scalar<T>());
  };
  switch (start.dtype()) {
    case DType::kInt32: return length(int32_t{});
    case DType::kInt64: return length(int64_t{});
    case DType::kFloat32: return length(float{});
    case DType::kFloat64: return length(double{});
    default: throw InvalidArgumentError(StrCat("no range has dtype ", start.dtype()));
  }
}

}  // namespace cohort::ops
