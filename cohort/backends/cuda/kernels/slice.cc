// Slice, StridedSlice, its gradient, and Pad. A run of whole rows shares the bytes of the tensor.
#include <string>
#include <vector>

#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/register_moving.h"
#include "cohort/backends/cuda/kernels/strided_copy.cu.h"
#include "cohort/backends/cuda/kernels/strided_copy.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/shape_rules.h"
#include "cohort/ops/strided_slice_spec.h"

namespace cohort::cuda {
namespace {

using ops::StridedSliceSpec;

// Outputs the elements of x that `spec` takes.
void TakeSlice(const CudaCall& call, const Tensor& x, const StridedSliceSpec& spec) {
  KernelContext& ctx = call.ctx();
  const Shape& in = x.shape();
  bool rows = in.rank() > 0 && spec.stride[0] == 1;
  for (int i = 1; i < in.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    rows = rows && spec.stride[at] == 1 && spec.count[at] == in.dim(i);
  }
  if (in.rank() == 0) return ctx.SetOutput(0, x.Reshaped(spec.output));
  if (rows) return ctx.SetOutput(0, x.Slice(spec.begin[0], spec.begin[0] + spec.count[0]).Reshaped(spec.output));
  Tensor& out = ctx.AllocateOutput(0, spec.output);
  const Shape taken(spec.count);
  const auto from = DenseStrides(in), to = DenseStrides(taken);
  StridedLayout layout;
  int64_t first = 0;
  for (size_t i = 0; i < spec.begin.size(); ++i) {
    first += spec.begin[i] * from[i];
    layout.Add(spec.count[i], spec.stride[i] * from[i], to[i]);
  }
  CopyStrided(call, layout, x, first, out);
}

// Outputs a tensor of shape `shape` with x at the elements that `spec` selects, and `fill` (zero, if null) elsewhere.
void PutSlice(const CudaCall& call, const Tensor& x, const Shape& shape, const StridedSliceSpec& spec,
              const Tensor* fill) {
  Tensor& out = call.ctx().AllocateOutput(0, shape);
  if (out.num_elements() == 0) return;
  const auto from = DenseStrides(Shape(spec.count));
  PutSliceArgs args;
  args.from = x.raw_data();
  args.fill = fill == nullptr ? nullptr : fill->raw_data();
  args.to = out.raw_data();
  args.element_bytes = DTypeSize(x.dtype());
  args.elements = out.num_elements();
  args.rank = shape.rank();
  for (int i = 0; i < shape.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    args.dims[i] = {Divider(shape.dim(i)), spec.begin[at], spec.stride[at], spec.count[at], from[at]};
  }
  LaunchPutSlice(call.driver(), call.stream(), args);
}

void Slice(KernelContext& ctx) {
  const CudaCall call(ctx);
  const Tensor& x = ctx.input(0);
  StridedSliceSpec spec;
  spec.begin = ops::IntegerValues(ctx.input(1));
  spec.output = ops::SlicedShape(x.shape(), spec.begin, ops::IntegerValues(ctx.input(2)));
  spec.count.assign(spec.output.dims().begin(), spec.output.dims().end());
  spec.stride.assign(spec.begin.size(), 1);
  TakeSlice(call, x, spec);
}

void Pad(KernelContext& ctx) {
  const CudaCall call(ctx);
  const Tensor& x = ctx.input(0);
  const std::vector<int64_t> paddings = ops::IntegerValues(ctx.input(1));
  const Shape shape = ops::PaddedShape(x.shape(), paddings);
  StridedSliceSpec spec;
  for (int i = 0; i < shape.rank(); ++i) {
    spec.begin.push_back(paddings[static_cast<size_t>(2 * i)]);
    spec.stride.push_back(1);
    spec.count.push_back(x.shape().dim(i));
  }
  const Tensor* fill = ctx.num_inputs() > 2 ? &ctx.input(2) : nullptr;
  if (fill != nullptr && fill->num_elements() != 1) {
    throw InvalidArgumentError(StrCat("constant_values must be a scalar; got shape ", fill->shape()));
  }
  PutSlice(call, x, shape, spec, fill);
}

ops::StridedSliceMasks MasksOf(const KernelConstruction& c) {
  return {c.attr<int64_t>("begin_mask"), c.attr<int64_t>("end_mask"), c.attr<int64_t>("ellipsis_mask"),
          c.attr<int64_t>("new_axis_mask"), c.attr<int64_t>("shrink_axis_mask")};
}

class StridedSliceKernel final : public OpKernel {
 public:
  explicit StridedSliceKernel(const KernelConstruction& c) : masks_(MasksOf(c)) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& x = ctx.input(0);
    TakeSlice(call, x,
              ops::ResolveStridedSlice(x.shape(), ops::IntegerValues(ctx.input(1)), ops::IntegerValues(ctx.input(2)),
                                       ops::IntegerValues(ctx.input(3)), masks_));
  }

 private:
  const ops::StridedSliceMasks masks_;
};

class StridedSliceGradKernel final : public OpKernel {
 public:
  explicit StridedSliceGradKernel(const KernelConstruction& c) : masks_(MasksOf(c)) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Shape shape(ops::IntegerValues(ctx.input(0)));
    const Tensor& dy = ctx.input(4);
    const StridedSliceSpec spec =
        ops::ResolveStridedSlice(shape, ops::IntegerValues(ctx.input(1)), ops::IntegerValues(ctx.input(2)),
                                 ops::IntegerValues(ctx.input(3)), masks_);
    if (spec.output != dy.shape()) {
      throw InvalidArgumentError(
          StrCat("dy of shape ", dy.shape(), " does not have the shape of the slice, ", spec.output));
    }
    PutSlice(call, dy, shape, spec, nullptr);
  }

 private:
  const ops::StridedSliceMasks masks_;
};

}  // namespace

void RegisterSliceKernels(KernelRegistry& registry) {
  RegisterMovingFn(registry, "Slice", Slice);
  RegisterMoving<StridedSliceKernel>(registry, "StridedSlice");
  RegisterMoving<StridedSliceGradKernel>(registry, "StridedSliceGrad");
  RegisterMovingFn(registry, "Pad", Pad);
  RegisterMovingFn(registry, "PadV2", Pad);
}

}  // namespace cohort::cuda
