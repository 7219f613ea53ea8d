// Kernels that pass their input on with another shape, those that answer with shapes (in host memory), and BroadcastTo.
#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/register_moving.h"
#include "cohort/backends/cuda/kernels/strided_copy.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::cuda {
namespace {

void PassAll(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) ctx.SetOutput(i, ctx.input(i));
}

// Gives the input the shape of the op's shape rule: Reshape, ExpandDims, Squeeze.
void PassReshaped(KernelContext& ctx) {
  const CudaCall call(ctx);
  ctx.SetOutput(0, ctx.input(0).Reshaped(OutputShapes(ctx)[0]));
}

// Writes an integer of the node's dtype into host memory.
void PutInteger(Tensor& out, int64_t at, int64_t value) {
  if (out.dtype() == DType::kInt64) {
    out.data<int64_t>()[at] = value;
    return;
  }
  if (value > std::numeric_limits<int32_t>::max()) {
    throw InvalidArgumentError(StrCat("a dimension or size of ", value, " does not fit into int32; ask for int64"));
  }
  out.data<int32_t>()[at] = static_cast<int32_t>(value);
}

void PutIntegers(KernelContext& ctx, int output, std::span<const int64_t> values) {
  Tensor& out = ctx.AllocateOutput(output, Shape{static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) PutInteger(out, static_cast<int64_t>(i), values[i]);
}

void ShapeOf(KernelContext& ctx) { PutIntegers(ctx, 0, ctx.input(0).shape().dims()); }
void SizeOf(KernelContext& ctx) { PutInteger(ctx.AllocateOutput(0, Shape()), 0, ctx.input(0).num_elements()); }
void RankOf(KernelContext& ctx) { PutInteger(ctx.AllocateOutput(0, Shape()), 0, ctx.input(0).shape().rank()); }

// Computes the axes, counted in the broadcast shape, over which the gradient of each operand is summed. These are the
// axes that the operand does not have or in which its size is 1. If both sizes are 1, the axis counts for both.
void BroadcastGradientArgs(KernelContext& ctx) {
  const Shape a(ops::IntegerValues(ctx.input(0))), b(ops::IntegerValues(ctx.input(1)));
  std::vector<int64_t> reduce_a, reduce_b;
  if (a != b) {
    const Shape both = BroadcastShapes(a, b);
    for (int i = 0; i < both.rank(); ++i) {
      const int at_a = i - (both.rank() - a.rank()), at_b = i - (both.rank() - b.rank());
      if (at_a < 0 || a.dim(at_a) == 1) reduce_a.push_back(i);
      if (at_b < 0 || b.dim(at_b) == 1) reduce_b.push_back(i);
    }
  }
  PutIntegers(ctx, 0, reduce_a);
  PutIntegers(ctx, 1, reduce_b);
}

void BroadcastTo(KernelContext& ctx) {
  const CudaCall call(ctx);
  const Tensor& x = ctx.input(0);
  const Shape shape(ops::IntegerValues(ctx.input(1)));
  if (x.shape() == shape) return ctx.SetOutput(0, x);
  if (x.shape().rank() > shape.rank() || BroadcastShapes(x.shape(), shape) != shape) {
    throw InvalidArgumentError(StrCat("a tensor of shape ", x.shape(), " does not broadcast to ", shape));
  }
  Tensor& out = ctx.AllocateOutput(0, shape);
  const auto from = DenseStrides(x.shape()), to = DenseStrides(shape);
  const int added = shape.rank() - x.shape().rank();
  StridedLayout layout;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool repeats = i < added || x.shape().dim(i - added) == 1;
    layout.Add(shape.dim(i), repeats ? 0 : from[static_cast<size_t>(i - added)], to[static_cast<size_t>(i)]);
  }
  CopyStrided(call, layout, x, 0, out);
}

}  // namespace

void RegisterArrayKernels(KernelRegistry& registry) {
  registry.RegisterFn("Identity", kGpu, PassAll);
  registry.RegisterFn("IdentityN", kGpu, PassAll);
  registry.RegisterFn("StopGradient", kGpu, PassAll);
  registry.RegisterFn("Shape", kGpu, ShapeOf);
  registry.RegisterFn("Size", kGpu, SizeOf);
  registry.RegisterFn("Rank", kGpu, RankOf);
  registry.RegisterFn("Reshape", kGpu, PassReshaped);
  registry.RegisterFn("ExpandDims", kGpu, PassReshaped);
  registry.RegisterFn("Squeeze", kGpu, PassReshaped);
  RegisterMovingFn(registry, "BroadcastTo", BroadcastTo);
  registry.RegisterFn("BroadcastGradientArgs", kGpu, BroadcastGradientArgs);
}

}  // namespace cohort::cuda
