// Transpose and ReverseV2.
#include <vector>

#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/register_moving.h"
#include "cohort/backends/cuda/kernels/strided_copy.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::cuda {
namespace {

void Transpose(KernelContext& ctx) {
  const CudaCall call(ctx);
  const Tensor& x = ctx.input(0);
  const std::vector<int> perm = ops::CheckedPermutation(ops::IntegerValues(ctx.input(1)), x.shape().rank());
  Shape shape;
  for (const int axis : perm) shape.AddDim(x.shape().dim(axis));
  const auto from = DenseStrides(x.shape()), to = DenseStrides(shape);
  StridedLayout layout;
  for (int i = 0; i < shape.rank(); ++i) {
    layout.Add(shape.dim(i), from[static_cast<size_t>(perm[static_cast<size_t>(i)])], to[static_cast<size_t>(i)]);
  }
  const bool unmoved = layout.rank() == 0 || (layout.rank() == 1 && layout.dim(0).from == 1);
  if (unmoved || x.num_elements() == 0) return ctx.SetOutput(0, x.Reshaped(shape));
  CopyStrided(call, layout, x, 0, ctx.AllocateOutput(0, shape));
}

void Reverse(KernelContext& ctx) {
  const CudaCall call(ctx);
  const Tensor& x = ctx.input(0);
  const Shape& shape = x.shape();
  const std::vector<bool> reversed = ops::AxisMask(ops::IntegerValues(ctx.input(1)), shape.rank());
  const auto strides = DenseStrides(shape);
  StridedLayout layout;
  int64_t first = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t stride = strides[static_cast<size_t>(i)];
    const bool backwards = reversed[static_cast<size_t>(i)];
    if (backwards) first += (shape.dim(i) - 1) * stride;
    layout.Add(shape.dim(i), backwards ? -stride : stride, stride);
  }
  CopyStrided(call, layout, x, first, ctx.AllocateOutput(0, shape));
}

}  // namespace

void RegisterLayoutKernels(KernelRegistry& registry) {
  RegisterMovingFn(registry, "Transpose", Transpose);
  RegisterMovingFn(registry, "ReverseV2", Reverse);
}

}  // namespace cohort::cuda
