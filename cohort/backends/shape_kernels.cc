#include "cohort/backends/shape_kernels.h"

#include <limits>
#include <span>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

void PassAll(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) ctx.SetOutput(i, ctx.input(i));
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

void Reshape(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& wanted = ctx.input(1);
  if (wanted.shape().rank() != 1) {
    throw InvalidArgumentError(StrCat("a shape must be a vector; got a tensor of shape ", wanted.shape()));
  }
  ctx.SetOutput(0, x.Reshaped(ops::ResolveReshape(x.shape(), Shape(ops::IntegerValues(wanted)))));
}

void ExpandDims(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int rank = x.shape().rank();
  const int at = ops::NormalizeAxis(ops::IntegerScalar(ctx.input(1), "dim"), rank + 1, "dim");
  ctx.SetOutput(0, x.Reshaped(x.shape().Sub(0, at).Concat(Shape{1}).Concat(x.shape().Sub(at, rank))));
}

class SqueezeKernel final : public OpKernel {
 public:
  explicit SqueezeKernel(const KernelConstruction& c) : axes_(c.attr<std::vector<int64_t>>("squeeze_dims")) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    ctx.SetOutput(0, x.Reshaped(ops::SqueezedShape(x.shape(), axes_)));
  }

 private:
  std::vector<int64_t> axes_;
};

// Computes the axes, counted in the broadcast shape, over which the gradient of each operand is summed. These are the
// axes that the operand does not have or in which its size is 1. If both sizes are 1, the axis counts for both
// operands, as in TensorFlow.
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

}  // namespace

void RegisterShapeKernels(KernelRegistry& registry, const std::string& device_type) {
  registry.RegisterFn("Identity", device_type, PassAll);
  registry.RegisterFn("IdentityN", device_type, PassAll);
  registry.RegisterFn("StopGradient", device_type, PassAll);
  registry.RegisterFn("Shape", device_type, ShapeOf);
  registry.RegisterFn("Size", device_type, SizeOf);
  registry.RegisterFn("Rank", device_type, RankOf);
  registry.RegisterFn("Reshape", device_type, Reshape);
  registry.RegisterFn("ExpandDims", device_type, ExpandDims);
  registry.Register<SqueezeKernel>("Squeeze", device_type);
  registry.RegisterFn("BroadcastGradientArgs", device_type, BroadcastGradientArgs);
}

}  // namespace cohort
