// BroadcastTo, and the kernels of cohort/backends/shape_kernels.h.
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/register_moving.h"
#include "cohort/backends/cuda/kernels/strided_copy.h"
#include "cohort/backends/shape_kernels.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::cuda {
namespace {

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
  RegisterShapeKernels(registry, kGpu);
  RegisterMovingFn(registry, "BroadcastTo", BroadcastTo);
}

}  // namespace cohort::cuda
