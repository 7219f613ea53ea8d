// The kernels of Slice, StridedSlice, its gradient and Pad, as far as they are the same for every backend. Internal to
// backends/.
//
// A backend gives the two moves as static functions of a class Moves:
//   // Outputs the elements of x that `spec` takes. TakeRows has been tried.
//   static void Take(KernelContext& ctx, const Tensor& x, const ops::StridedSliceSpec& spec);
//   // Outputs a tensor of shape `shape` with x at the elements that `spec` selects, and *fill (zero, if null)
//   elsewhere. static void Put(KernelContext& ctx, const Tensor& x, const Shape& shape, const ops::StridedSliceSpec&
//   spec,
//                   const Tensor* fill);
#pragma once

#include <vector>

#include "cohort/backends/strided_layout.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/shape_rules.h"
#include "cohort/ops/strided_slice_spec.h"

namespace cohort {

// The copy that takes a slice out of x: where it begins in x, in elements, and its layout.
struct SliceCopy {
  int64_t first = 0;
  StridedLayout layout;
};
inline SliceCopy CopyOfSlice(const Shape& x, const ops::StridedSliceSpec& spec) {
  const auto from = DenseStrides(x), to = DenseStrides(Shape(spec.count));
  SliceCopy copy;
  for (size_t i = 0; i < spec.begin.size(); ++i) {
    copy.first += spec.begin[i] * from[i];
    copy.layout.Add(spec.count[i], spec.stride[i] * from[i], to[i]);
  }
  return copy;
}

// If `spec` takes a run of whole rows of x, or x is a scalar, outputs it without a copy, and returns true.
inline bool TakeRows(KernelContext& ctx, const Tensor& x, const ops::StridedSliceSpec& spec) {
  const Shape& in = x.shape();
  bool rows = in.rank() == 0 || spec.stride[0] == 1;
  for (int i = 1; i < in.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    rows = rows && spec.stride[at] == 1 && spec.count[at] == in.dim(i);
  }
  if (!rows) return false;
  const Tensor taken = in.rank() == 0 ? x : x.Slice(spec.begin[0], spec.begin[0] + spec.count[0]);
  ctx.SetOutput(0, taken.Reshaped(spec.output));
  return true;
}

template <typename Moves>
void TakeSlice(KernelContext& ctx, const Tensor& x, const ops::StridedSliceSpec& spec) {
  if (!TakeRows(ctx, x, spec)) Moves::Take(ctx, x, spec);
}

template <typename Moves>
void SliceKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  ops::StridedSliceSpec spec;
  spec.begin = ops::IntegerValues(ctx.input(1));
  spec.output = ops::SlicedShape(x.shape(), spec.begin, ops::IntegerValues(ctx.input(2)));
  spec.count.assign(spec.output.dims().begin(), spec.output.dims().end());
  spec.stride.assign(spec.begin.size(), 1);
  TakeSlice<Moves>(ctx, x, spec);
}

template <typename Moves>
void PadKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const std::vector<int64_t> paddings = ops::IntegerValues(ctx.input(1));
  const Shape shape = ops::PaddedShape(x.shape(), paddings);
  ops::StridedSliceSpec spec;
  for (int i = 0; i < shape.rank(); ++i) {
    spec.begin.push_back(paddings[static_cast<size_t>(2 * i)]);
    spec.stride.push_back(1);
    spec.count.push_back(x.shape().dim(i));
  }
  const Tensor* fill = ctx.num_inputs() > 2 ? &ctx.input(2) : nullptr;
  if (fill != nullptr && fill->num_elements() != 1) {
    throw InvalidArgumentError(StrCat("constant_values must be a scalar; got shape ", fill->shape()));
  }
  Moves::Put(ctx, x, shape, spec, fill);
}

inline ops::StridedSliceMasks MasksOf(const KernelConstruction& c) {
  return {c.attr<int64_t>("begin_mask"), c.attr<int64_t>("end_mask"), c.attr<int64_t>("ellipsis_mask"),
          c.attr<int64_t>("new_axis_mask"), c.attr<int64_t>("shrink_axis_mask")};
}
// Returns what the inputs 1 to 3, which are the begin, the end and the strides, take of a tensor of shape `shape`.
inline ops::StridedSliceSpec SpecOf(const KernelContext& ctx, const Shape& shape, const ops::StridedSliceMasks& masks) {
  return ops::ResolveStridedSlice(shape, ops::IntegerValues(ctx.input(1)), ops::IntegerValues(ctx.input(2)),
                                  ops::IntegerValues(ctx.input(3)), masks);
}

// The plan owns the two kernels below. They are thread-safe.
template <typename Moves>
class StridedSliceKernel final : public OpKernel {
 public:
  explicit StridedSliceKernel(const KernelConstruction& c) : masks_(MasksOf(c)) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TakeSlice<Moves>(ctx, x, SpecOf(ctx, x.shape(), masks_));
  }

 private:
  const ops::StridedSliceMasks masks_;
};

template <typename Moves>
class StridedSliceGradKernel final : public OpKernel {
 public:
  explicit StridedSliceGradKernel(const KernelConstruction& c) : masks_(MasksOf(c)) {}
  void Compute(KernelContext& ctx) override {
    const Shape shape(ops::IntegerValues(ctx.input(0)));
    const Tensor& dy = ctx.input(4);
    const ops::StridedSliceSpec spec = SpecOf(ctx, shape, masks_);
    if (spec.output != dy.shape()) {
      throw InvalidArgumentError(
          StrCat("dy of shape ", dy.shape(), " does not have the shape of the slice, ", spec.output));
    }
    Moves::Put(ctx, dy, shape, spec, nullptr);
  }

 private:
  const ops::StridedSliceMasks masks_;
};

}  // namespace cohort
