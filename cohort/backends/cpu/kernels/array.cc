// Kernels for shapes and dtypes: those that pass their input on with another shape, Shape and Size, BroadcastTo, the
// axes of broadcast gradients, and Cast.
#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "cohort/backends/cpu/kernels/broadcast.h"
#include "cohort/backends/cpu/kernels/elementwise.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

void PassAll(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) ctx.SetOutput(i, ctx.input(i));
}

// An integer output of the node's dtype.
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
void RankOf(KernelContext& ctx) { *ctx.AllocateOutput(0, Shape()).data<int32_t>() = ctx.input(0).shape().rank(); }

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

void BroadcastTo(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Shape shape(ops::IntegerValues(ctx.input(1)));
  if (x.shape() == shape) return ctx.SetOutput(0, x);
  if (x.shape().rank() > shape.rank() || BroadcastShapes(x.shape(), shape) != shape) {
    throw InvalidArgumentError(StrCat("a tensor of shape ", x.shape(), " does not broadcast to ", shape));
  }
  Tensor& out = ctx.AllocateOutput(0, shape);
  if (out.num_elements() == 0) return;
  const auto plan = cpu::PlanBroadcast<1>(shape, {&x.shape()});
  cpu::ForElements(x.dtype(), "BroadcastTo", [&]<typename T>(T) {
    const T* from = static_cast<const T*>(x.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    const int64_t inner = plan.inner();
    cpu::ForBlocks(
        plan.outer(), ctx.num_threads(),
        [&](int64_t begin, int64_t end) {
          cpu::WalkBroadcast(plan, begin, end, [&](int64_t at, const std::array<int64_t, 1>& offsets) {
            if (plan.inner_repeats(0)) {
              std::fill(to + at, to + at + inner, from[offsets[0]]);
            } else {
              std::copy(from + offsets[0], from + offsets[0] + inner, to + at);
            }
          });
        },
        inner);
    return 0;
  });
}

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

// Cuts off the fraction. A number that does not fit becomes the lowest number of a signed type, as on x86. For uint8
// the low bits of that number are taken.
template <typename To, typename W>
COHORT_INLINE To Truncate(W x) {
  if constexpr (std::is_same_v<To, uint8_t>) {
    return static_cast<uint8_t>(Truncate<int32_t>(x));
  } else {
    constexpr To kLowest = std::numeric_limits<To>::min();
    constexpr W kBound = static_cast<W>(kLowest);
    return x >= kBound && x < -kBound ? static_cast<To>(x) : kLowest;
  }
}

template <typename From, typename To>
struct CastFn {
  template <typename W>
  static COHORT_INLINE auto Apply(W x) {
    if constexpr (std::is_same_v<To, bool>) {
      return x != W(0);
    } else if constexpr (std::is_floating_point_v<W> && std::is_integral_v<To>) {
      return Truncate<To>(x);
    } else {
      return static_cast<cpu::Wide<To>>(x);
    }
  }
};

template <typename From, typename To>
std::unique_ptr<OpKernel> MakeCastFromTo() {
  return std::make_unique<cpu::UnaryKernel>(cpu::Widest<cpu::UnaryBody<CastFn<From, To>, From, To>>(), 1);
}

template <typename From>
std::unique_ptr<OpKernel> MakeCastFrom(DType to) {
  if (to == DType::kBool) return MakeCastFromTo<From, bool>();
  return cpu::ForAllNumbers(to, "Cast", []<typename To>(To) { return MakeCastFromTo<From, To>(); });
}

class PassKernel final : public OpKernel {
 public:
  void Compute(KernelContext& ctx) override { ctx.SetOutput(0, ctx.input(0)); }
};

std::unique_ptr<OpKernel> MakeCast(const KernelConstruction& c) {
  const DType from = c.node.input(0).dtype(), to = c.node.output_dtype(0);
  if (from == to) return std::make_unique<PassKernel>();
  if (from == DType::kBool) return MakeCastFrom<bool>(to);
  return cpu::ForAllNumbers(from, "Cast", [&]<typename From>(From) { return MakeCastFrom<From>(to); });
}

}  // namespace

void RegisterArrayKernels(KernelRegistry& registry) {
  registry.RegisterFn("Identity", "CPU", PassAll);
  registry.RegisterFn("IdentityN", "CPU", PassAll);
  registry.RegisterFn("StopGradient", "CPU", PassAll);
  registry.RegisterFn("Shape", "CPU", ShapeOf);
  registry.RegisterFn("Size", "CPU", SizeOf);
  registry.RegisterFn("Rank", "CPU", RankOf);
  registry.RegisterFn("Reshape", "CPU", Reshape);
  registry.RegisterFn("ExpandDims", "CPU", ExpandDims);
  registry.Register<SqueezeKernel>("Squeeze", "CPU");
  registry.RegisterFn("BroadcastTo", "CPU", BroadcastTo);
  registry.RegisterFn("BroadcastGradientArgs", "CPU", BroadcastGradientArgs);
  registry.Register("Cast", "CPU", MakeCast);
}

}  // namespace cohort
