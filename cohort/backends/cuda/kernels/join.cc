// ConcatV2, Split, SplitV, Pack, Unpack and Tile. A launch copies up to kMostParts parts. Parts along axis 0 share the
// bytes of the whole.
#include <algorithm>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/kernels/join.cu.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/register_moving.h"
#include "cohort/backends/cuda/kernels/strided_copy.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::cuda {
namespace {

int64_t ElementsFrom(const Shape& shape, int axis) { return shape.Sub(axis, shape.rank()).num_elements(); }
int64_t ElementsBefore(const Shape& shape, int axis) { return shape.Sub(0, axis).num_elements(); }

// A part, and how many of its bytes a row of the whole has.
struct Part {
  void* data;
  int64_t bytes;
};

// Copies between `whole`, which has `outer` rows, and parts that lie in each row one after the other.
void CopyParts(const CudaCall& call, void* whole, int64_t outer, const std::vector<Part>& parts, bool cut) {
  size_t piece = LargestMove({AddressOf(whole)});
  int64_t row = 0;
  for (const Part& part : parts) {
    row += part.bytes;
    piece = LargestMove({static_cast<int64_t>(piece), AddressOf(part.data), part.bytes});
  }
  if (row * outer == 0) return;
  const auto size = static_cast<int64_t>(piece);
  JoinArgs args;
  args.whole = whole;
  args.outer = outer;
  args.row = row / size;
  args.piece_bytes = piece;
  const auto launch = [&] {
    if (args.count == 0) return;
    LaunchJoin(call.driver(), call.stream(), args, cut);
    args.first += args.starts[args.count];
    args.count = 0;
  };
  for (const Part& part : parts) {
    if (part.bytes == 0) continue;  // a search for the part of a column must not find it
    args.parts[args.count] = part.data;
    args.starts[args.count + 1] = args.starts[args.count] + part.bytes / size;
    if (++args.count == kMostParts) launch();
  }
  launch();
}

// The data of an input, which a copy only reads.
void* DataOf(const Tensor& tensor) { return const_cast<void*>(tensor.raw_data()); }

int64_t Bytes(const Tensor& tensor, int64_t elements) {
  return elements * static_cast<int64_t>(DTypeSize(tensor.dtype()));
}

// Joins the first `count` inputs, whose rows begin at axis `axis` of each.
void JoinInputs(const CudaCall& call, int count, int axis, Tensor& out) {
  const KernelContext& ctx = call.ctx();
  std::vector<Part> parts;
  for (int i = 0; i < count; ++i) {
    const Tensor& part = ctx.input(i);
    parts.push_back({DataOf(part), Bytes(part, ElementsFrom(part.shape(), axis))});
  }
  CopyParts(call, out.raw_data(), ElementsBefore(ctx.input(0).shape(), axis), parts, false);
}

void Concat(KernelContext& ctx) {
  CudaCall call(ctx);
  const int count = ctx.num_inputs() - 1;
  const int axis = ops::NormalizeAxis(ops::IntegerScalar(ctx.input(count), "concat axis"), ctx.input(0).shape().rank(),
                                      "concat axis");
  JoinInputs(call, count, axis, *call.AllocateOutputs());
}

class PackKernel final : public OpKernel {
 public:
  explicit PackKernel(const KernelConstruction& c) : axis_(c.attr<int64_t>("axis")) {}
  void Compute(KernelContext& ctx) override {
    CudaCall call(ctx);
    Tensor& out = *call.AllocateOutputs();
    JoinInputs(call, ctx.num_inputs(), ops::NormalizeAxis(axis_, out.shape().rank()), out);
  }

 private:
  const int64_t axis_;
};

// Cuts the value into outputs of these shapes. The rows of an output begin at axis `axis`.
void CutInto(const CudaCall& call, const Tensor& value, int axis, const std::vector<Shape>& shapes) {
  KernelContext& ctx = call.ctx();
  const int64_t outer = ElementsBefore(value.shape(), axis);
  int64_t at = 0;
  std::vector<Part> parts;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int output = static_cast<int>(i);
    if (axis == 0) {
      const int64_t elements = shapes[i].num_elements();
      ctx.SetOutput(output, value.Reshaped(Shape{value.num_elements()}).Slice(at, at + elements).Reshaped(shapes[i]));
      at += elements;
      continue;
    }
    Tensor& out = ctx.AllocateOutput(output, shapes[i]);
    parts.push_back({out.raw_data(), Bytes(out, ElementsFrom(shapes[i], axis))});
  }
  if (axis != 0) CopyParts(call, DataOf(value), outer, parts, true);
}

template <int kValue, int kAxis>
void Split(KernelContext& ctx) {
  const CudaCall call(ctx);
  const Tensor& value = ctx.input(kValue);
  const int axis =
      ops::NormalizeAxis(ops::IntegerScalar(ctx.input(kAxis), "split_dim"), value.shape().rank(), "split axis");
  CutInto(call, value, axis, OutputShapes(ctx));
}

class UnpackKernel final : public OpKernel {
 public:
  explicit UnpackKernel(const KernelConstruction& c) : axis_(c.attr<int64_t>("axis")) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& value = ctx.input(0);
    CutInto(call, value, ops::NormalizeAxis(axis_, value.shape().rank()), OutputShapes(ctx));
  }

 private:
  const int64_t axis_;
};

// The offsets of the parts of a concatenation, in host memory.
void ConcatOffset(KernelContext& ctx) {
  const std::vector<int64_t> first = ops::IntegerValues(ctx.input(1));
  const auto rank = static_cast<int64_t>(first.size());
  const auto axis =
      static_cast<size_t>(ops::NormalizeAxis(ops::IntegerScalar(ctx.input(0), "concat_dim"), static_cast<int>(rank)));
  int64_t at = 0;
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    const std::vector<int64_t> shape = ops::IntegerValues(ctx.input(i + 1));
    if (shape.size() != first.size()) {
      throw InvalidArgumentError(
          StrCat("input ", i, " should contain ", first.size(), " elements, but got ", shape.size()));
    }
    Tensor& out = ctx.AllocateOutput(i, Shape{rank});
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t offset = d == axis ? at : 0;
      if (out.dtype() == DType::kInt32) {
        out.data<int32_t>()[d] = static_cast<int32_t>(offset);
      } else {
        out.data<int64_t>()[d] = offset;
      }
    }
    at += shape[axis];
  }
}

void Tile(KernelContext& ctx) {
  CudaCall call(ctx);
  const Tensor& x = ctx.input(0);
  const Shape& in = x.shape();
  const std::vector<int64_t> multiples = ops::IntegerValues(ctx.input(1));
  const Shape shape = OutputShapes(ctx)[0];
  if (shape == in) return ctx.SetOutput(0, x);
  const auto from = DenseStrides(in), to = DenseStrides(shape);
  StridedLayout layout;
  for (int i = 0; i < in.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    layout.Add(multiples[at], 0, in.dim(i) * to[at]);
    layout.Add(in.dim(i), from[at], to[at]);
  }
  CopyStrided(call, layout, x, 0, ctx.AllocateOutput(0, shape));
}

}  // namespace

void RegisterJoinKernels(KernelRegistry& registry) {
  RegisterMovingFn(registry, "ConcatV2", Concat);
  registry.RegisterFn("ConcatOffset", kGpu, ConcatOffset);
  RegisterMovingFn(registry, "Split", Split<1, 0>);
  RegisterMovingFn(registry, "SplitV", Split<0, 2>);
  RegisterMoving<PackKernel>(registry, "Pack");
  RegisterMoving<UnpackKernel>(registry, "Unpack");
  RegisterMovingFn(registry, "Tile", Tile);
}

}  // namespace cohort::cuda
