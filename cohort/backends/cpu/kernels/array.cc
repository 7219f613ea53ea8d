// BroadcastTo and Cast, and the kernels of cohort/backends/shape_kernels.h.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <type_traits>

#include "cohort/backends/cpu/kernels/broadcast.h"
#include "cohort/backends/cpu/kernels/elementwise.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/shape_kernels.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

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
  RegisterShapeKernels(registry, "CPU");
  registry.RegisterFn("BroadcastTo", "CPU", BroadcastTo);
  registry.Register("Cast", "CPU", MakeCast);
}

}  // namespace cohort
