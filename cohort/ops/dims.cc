#include "cohort/ops/dims.h"

#include <cstdint>
#include <vector>

#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/slice.h"

namespace cohort::ops {
namespace {

Output KnownDims(Graph& graph, const Shape& shape, DType dtype) {
  if (dtype == DType::kInt32) return ShapeConst(graph, shape);
  return Const(graph, std::vector<int64_t>(shape.dims().begin(), shape.dims().end()));
}

}  // namespace

Output ShapeValue(Output x, DType dtype) {
  return x.shape().IsFullyDefined() ? KnownDims(x.graph(), x.shape(), dtype) : ShapeOf(x, dtype);
}

Output DimValues(Output x, int begin, int end, DType dtype) {
  if (x.shape().has_rank()) {
    const Shape dims = x.shape().Sub(begin, end);
    if (dims.IsFullyDefined()) return KnownDims(x.graph(), dims, dtype);
  }
  return Slice(ShapeOf(x, dtype), {begin}, {end - begin});
}

Output DimValue(Output x, int axis, DType dtype) {
  const Shape& shape = x.shape();
  const int at = shape.has_rank() && axis < 0 ? axis + shape.rank() : axis;
  if (shape.has_rank() && at >= 0 && at < shape.rank() && shape.dim(at) >= 0) {
    return Const(x.graph(), NumberTensor(dtype, shape.dim(at)));
  }
  return StridedSlice(ShapeOf(x, dtype), {axis}, {axis + 1}, {1}, {.shrink_axis_mask = 1});
}

}  // namespace cohort::ops
