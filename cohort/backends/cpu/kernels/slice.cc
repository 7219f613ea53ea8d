#include <algorithm>
#include <string>
#include <vector>

#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/strided_copy.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/shape_rules.h"
#include "cohort/ops/strided_slice_spec.h"

namespace cohort {
namespace {

using ops::StridedSliceSpec;

// The elements that `spec` takes of x, in shape `shape`. A run of whole rows shares x's bytes.
void TakeSlice(KernelContext& ctx, const Tensor& x, const StridedSliceSpec& spec) {
  const Shape& in = x.shape();
  bool rows = in.rank() > 0 && spec.stride[0] == 1;
  for (int i = 1; i < in.rank(); ++i) {
    const size_t at = static_cast<size_t>(i);
    rows = rows && spec.stride[at] == 1 && spec.count[at] == in.dim(i);
  }
  if (in.rank() == 0) return ctx.SetOutput(0, x.Reshaped(spec.output));
  if (rows) return ctx.SetOutput(0, x.Slice(spec.begin[0], spec.begin[0] + spec.count[0]).Reshaped(spec.output));
  Tensor& out = ctx.AllocateOutput(0, spec.output);
  Shape taken;
  for (const int64_t count : spec.count) taken.AddDim(count);
  const auto from = cpu::DenseStrides(in), to = cpu::DenseStrides(taken);
  cpu::StridedLayout layout;
  int64_t first = 0;
  for (size_t i = 0; i < spec.begin.size(); ++i) {
    first += spec.begin[i] * from[i];
    layout.Add(spec.count[i], spec.stride[i] * from[i], to[i]);
  }
  if (layout.elements() == 0) return;
  cpu::ForElements(x.dtype(), ctx.node().op_name(), [&]<typename T>(T) {
    cpu::CopyStrided(layout, static_cast<const T*>(x.raw_data()) + first, static_cast<T*>(out.raw_data()),
                     ctx.num_threads());
    return 0;
  });
}

// Fills `out`, of shape `shape`, with `fill`, and puts x at the elements that `spec` selects.
void PutSlice(KernelContext& ctx, const Tensor& x, const Shape& shape, const StridedSliceSpec& spec,
              const Tensor* fill) {
  Tensor& out = ctx.AllocateOutput(0, shape);
  Shape taken;
  for (const int64_t count : spec.count) taken.AddDim(count);
  const auto from = cpu::DenseStrides(taken), to = cpu::DenseStrides(shape);
  cpu::StridedLayout layout;
  int64_t first = 0;
  for (size_t i = 0; i < spec.begin.size(); ++i) {
    first += spec.begin[i] * to[i];
    layout.Add(spec.count[i], from[i], spec.stride[i] * to[i]);
  }
  cpu::ForElements(x.dtype(), ctx.node().op_name(), [&]<typename T>(T) {
    T* target = static_cast<T*>(out.raw_data());
    const T value = fill == nullptr ? T() : *static_cast<const T*>(fill->raw_data());
    if (layout.elements() < out.num_elements()) std::fill(target, target + out.num_elements(), value);
    if (layout.elements() > 0) {
      cpu::CopyStrided(layout, static_cast<const T*>(x.raw_data()), target + first, ctx.num_threads());
    }
    return 0;
  });
}

void Slice(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  StridedSliceSpec spec;
  spec.begin = ops::IntegerValues(ctx.input(1));
  spec.output = ops::SlicedShape(x.shape(), spec.begin, ops::IntegerValues(ctx.input(2)));
  spec.count.assign(spec.output.dims().begin(), spec.output.dims().end());
  spec.stride.assign(spec.begin.size(), 1);
  TakeSlice(ctx, x, spec);
}

void Pad(KernelContext& ctx) {
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
  PutSlice(ctx, x, shape, spec, fill);
}

ops::StridedSliceMasks MasksOf(const KernelConstruction& c) {
  return {c.attr<int64_t>("begin_mask"), c.attr<int64_t>("end_mask"), c.attr<int64_t>("ellipsis_mask"),
          c.attr<int64_t>("new_axis_mask"), c.attr<int64_t>("shrink_axis_mask")};
}

class StridedSliceKernel final : public OpKernel {
 public:
  explicit StridedSliceKernel(const KernelConstruction& c) : masks_(MasksOf(c)) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TakeSlice(ctx, x,
              ops::ResolveStridedSlice(x.shape(), ops::IntegerValues(ctx.input(1)), ops::IntegerValues(ctx.input(2)),
                                       ops::IntegerValues(ctx.input(3)), masks_));
  }

 private:
  ops::StridedSliceMasks masks_;
};

class StridedSliceGradKernel final : public OpKernel {
 public:
  explicit StridedSliceGradKernel(const KernelConstruction& c) : masks_(MasksOf(c)) {}
  void Compute(KernelContext& ctx) override {
    const Shape shape(ops::IntegerValues(ctx.input(0)));
    const Tensor& dy = ctx.input(4);
    const StridedSliceSpec spec =
        ops::ResolveStridedSlice(shape, ops::IntegerValues(ctx.input(1)), ops::IntegerValues(ctx.input(2)),
                                 ops::IntegerValues(ctx.input(3)), masks_);
    if (spec.output != dy.shape()) {
      throw InvalidArgumentError(
          StrCat("dy of shape ", dy.shape(), " does not have the shape of the slice, ", spec.output));
    }
    PutSlice(ctx, dy, shape, spec, nullptr);
  }

 private:
  ops::StridedSliceMasks masks_;
};

}  // namespace

void RegisterSliceKernels(KernelRegistry& registry) {
  registry.RegisterFn("Slice", "CPU", Slice);
  registry.Register<StridedSliceKernel>("StridedSlice", "CPU");
  registry.Register<StridedSliceGradKernel>("StridedSliceGrad", "CPU");
  registry.RegisterFn("Pad", "CPU", Pad);
  registry.RegisterFn("PadV2", "CPU", Pad);
}

}  // namespace cohort
