// Concat, Split, Pack, Unpack and Tile. They copy rows of equal length between tensors. Parts along axis 0 share the
// bytes of the whole.
#include <algorithm>
#include <vector>

#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/strided_copy.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

int64_t ElementsFrom(const Shape& shape, int axis) { return shape.Sub(axis, shape.rank()).num_elements(); }
int64_t ElementsBefore(const Shape& shape, int axis) { return shape.Sub(0, axis).num_elements(); }

// Copies `outer` rows of `row` elements. `from_step` and `to_step` are the steps from one row to the next.
void CopyRows(KernelContext& ctx, const Tensor& source, int64_t from, int64_t from_step, Tensor& target, int64_t to,
              int64_t to_step, int64_t outer, int64_t row) {
  if (outer * row == 0) return;
  cpu::StridedLayout layout;
  layout.Add(outer, from_step, to_step);
  layout.Add(row, 1, 1);
  cpu::ForElements(source.dtype(), ctx.node().op_name(), [&]<typename T>(T) {
    cpu::CopyStrided(layout, static_cast<const T*>(source.raw_data()) + from, static_cast<T*>(target.raw_data()) + to,
                     ctx.num_threads());
    return 0;
  });
}

void Concat(KernelContext& ctx) {
  const int count = ctx.num_inputs() - 1;
  const Shape& first = ctx.input(0).shape();
  const int axis = ops::NormalizeAxis(ops::IntegerScalar(ctx.input(count), "concat axis"), first.rank(), "concat axis");
  Shape shape = first;
  int64_t total = 0;
  for (int i = 0; i < count; ++i) {
    Shape part = ctx.input(i).shape();
    const bool same_rank = part.rank() == first.rank();
    if (same_rank) {
      total += part.dim(axis);
      part.set_dim(axis, first.dim(axis));
    }
    if (!same_rank || part != first) {
      throw InvalidArgumentError(StrCat("ConcatOp : Dimension mismatch: all but dimension ", axis,
                                        " must agree; shape[0] = ", first, " vs. shape[", i,
                                        "] = ", ctx.input(i).shape()));
    }
  }
  shape.set_dim(axis, total);
  Tensor& out = ctx.AllocateOutput(0, shape);
  const int64_t outer = ElementsBefore(shape, axis), to_step = ElementsFrom(shape, axis);
  int64_t at = 0;
  for (int i = 0; i < count; ++i) {
    const int64_t row = ElementsFrom(ctx.input(i).shape(), axis);
    CopyRows(ctx, ctx.input(i), 0, row, out, at, to_step, outer, row);
    at += row;
  }
}

void ConcatOffset(KernelContext& ctx) {
  const int count = ctx.num_inputs() - 1;
  const std::vector<int64_t> first = ops::IntegerValues(ctx.input(1));
  const int rank = static_cast<int>(first.size());
  const size_t axis = static_cast<size_t>(ops::NormalizeAxis(ops::IntegerScalar(ctx.input(0), "concat_dim"), rank));
  int64_t at = 0;
  for (int i = 0; i < count; ++i) {
    const std::vector<int64_t> shape = ops::IntegerValues(ctx.input(i + 1));
    if (shape.size() != first.size()) {
      throw InvalidArgumentError(
          StrCat("input ", i, " should contain ", first.size(), " elements, but got ", shape.size()));
    }
    Tensor& out = ctx.AllocateOutput(i, Shape{rank});
    cpu::ForNumbers(out.dtype(), "ConcatOffset", [&]<typename T>(T) {
      T* to = out.data<T>();
      for (size_t d = 0; d < shape.size(); ++d) to[d] = static_cast<T>(cpu::Wide<T>(d == axis ? at : 0));
      return 0;
    });
    at += shape[axis];
  }
}

// Cuts the value along `axis` into parts of the given sizes. Along axis 0 the parts share its bytes.
void SplitInto(KernelContext& ctx, const Tensor& value, int axis, const std::vector<int64_t>& sizes) {
  const Shape& shape = value.shape();
  const int64_t outer = ElementsBefore(shape, axis), from_step = ElementsFrom(shape, axis);
  const int64_t inner = shape.Sub(axis + 1, shape.rank()).num_elements();
  int64_t at = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int output = static_cast<int>(i);
    if (axis == 0) {
      ctx.SetOutput(output, value.Slice(at, at + sizes[i]));
    } else {
      Shape part = shape;
      part.set_dim(axis, sizes[i]);
      Tensor& out = ctx.AllocateOutput(output, part);
      CopyRows(ctx, value, at * inner, from_step, out, 0, sizes[i] * inner, outer, sizes[i] * inner);
    }
    at += sizes[i];
  }
}

void Split(KernelContext& ctx) {
  const Tensor& value = ctx.input(1);
  const int axis =
      ops::NormalizeAxis(ops::IntegerScalar(ctx.input(0), "split_dim"), value.shape().rank(), "split axis");
  const int64_t parts = ctx.num_outputs(), total = value.shape().dim(axis);
  if (total % parts != 0) {
    throw InvalidArgumentError(
        StrCat("Number of ways to split should evenly divide the split dimension, but got split_dim ", axis,
               " (size = ", total, ") and num_split ", parts));
  }
  SplitInto(ctx, value, axis, std::vector<int64_t>(static_cast<size_t>(parts), total / parts));
}

void SplitV(KernelContext& ctx) {
  const Tensor& value = ctx.input(0);
  const int axis =
      ops::NormalizeAxis(ops::IntegerScalar(ctx.input(2), "split_dim"), value.shape().rank(), "split axis");
  std::vector<int64_t> sizes = ops::IntegerValues(ctx.input(1));
  if (static_cast<int>(sizes.size()) != ctx.num_outputs()) {
    throw InvalidArgumentError(
        StrCat("size_splits has ", sizes.size(), " elements for num_split = ", ctx.num_outputs()));
  }
  SplitInto(ctx, value, axis, ops::ResolveSplit(std::move(sizes), value.shape().dim(axis)));
}

class PackKernel final : public OpKernel {
 public:
  explicit PackKernel(const KernelConstruction& c) : axis_(c.attr<int64_t>("axis")) {}
  void Compute(KernelContext& ctx) override {
    const int count = ctx.num_inputs();
    const Shape& part = ctx.input(0).shape();
    for (int i = 1; i < count; ++i) {
      if (ctx.input(i).shape() != part) {
        throw InvalidArgumentError(StrCat("Shapes of all inputs must match: values[0].shape = ", part, " != values[", i,
                                          "].shape = ", ctx.input(i).shape()));
      }
    }
    const int axis = ops::NormalizeAxis(axis_, part.rank() + 1);
    const Shape shape = part.Sub(0, axis).Concat(Shape{count}).Concat(part.Sub(axis, part.rank()));
    Tensor& out = ctx.AllocateOutput(0, shape);
    const int64_t outer = ElementsBefore(part, axis), row = ElementsFrom(part, axis);
    for (int i = 0; i < count; ++i) CopyRows(ctx, ctx.input(i), 0, row, out, i * row, count * row, outer, row);
  }

 private:
  int64_t axis_;
};

class UnpackKernel final : public OpKernel {
 public:
  explicit UnpackKernel(const KernelConstruction& c) : axis_(c.attr<int64_t>("axis")) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(0);
    const Shape& shape = value.shape();
    const int axis = ops::NormalizeAxis(axis_, shape.rank());
    const int count = ctx.num_outputs();
    if (shape.dim(axis) != count) {
      throw InvalidArgumentError(StrCat("Input shape axis ", axis, " must equal ", count, ", got shape ", shape));
    }
    const Shape part = shape.Sub(0, axis).Concat(shape.Sub(axis + 1, shape.rank()));
    const int64_t outer = ElementsBefore(part, axis), row = ElementsFrom(part, axis);
    for (int i = 0; i < count; ++i) {
      if (axis == 0) {
        ctx.SetOutput(i, value.Slice(i, i + 1).Reshaped(part));
      } else {
        Tensor& out = ctx.AllocateOutput(i, part);
        CopyRows(ctx, value, i * row, count * row, out, 0, row, outer, row);
      }
    }
  }

 private:
  int64_t axis_;
};

void Tile(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Shape& in = x.shape();
  const std::vector<int64_t> multiples = ops::IntegerValues(ctx.input(1));
  if (static_cast<int>(multiples.size()) != in.rank()) {
    throw InvalidArgumentError(
        StrCat("multiples must have one element a dimension of ", in, "; got ", multiples.size()));
  }
  Shape shape;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t times = multiples[static_cast<size_t>(i)];
    if (times < 0) throw InvalidArgumentError(StrCat("Expected multiples[", i, "] >= 0, but got ", times));
    int64_t dim = 0;
    if (__builtin_mul_overflow(in.dim(i), times, &dim)) {
      throw InvalidArgumentError(StrCat("multiples[", i, "] = ", times, " of ", in, " is too large"));
    }
    shape.AddDim(dim);
  }
  if (shape == in) return ctx.SetOutput(0, x);
  const auto from = cpu::DenseStrides(in), to = cpu::DenseStrides(shape);
  cpu::StridedLayout layout;
  for (int i = 0; i < in.rank(); ++i) {
    const size_t at = static_cast<size_t>(i);
    layout.Add(multiples[at], 0, in.dim(i) * to[at]);
    layout.Add(in.dim(i), from[at], to[at]);
  }
  Tensor& out = ctx.AllocateOutput(0, shape);
  cpu::ForElements(x.dtype(), "Tile", [&]<typename T>(T) {
    cpu::CopyStrided(layout, static_cast<const T*>(x.raw_data()), static_cast<T*>(out.raw_data()), ctx.num_threads());
    return 0;
  });
}

}  // namespace

void RegisterJoinKernels(KernelRegistry& registry) {
  registry.RegisterFn("ConcatV2", "CPU", Concat);
  registry.RegisterFn("ConcatOffset", "CPU", ConcatOffset);
  registry.RegisterFn("Split", "CPU", Split);
  registry.RegisterFn("SplitV", "CPU", SplitV);
  registry.Register<PackKernel>("Pack", "CPU");
  registry.Register<UnpackKernel>("Unpack", "CPU");
  registry.RegisterFn("Tile", "CPU", Tile);
}

}  // namespace cohort
