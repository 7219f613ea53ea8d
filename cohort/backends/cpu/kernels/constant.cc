#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"
#include "cohort/device/tensor_list.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

class ConstKernel final : public OpKernel {
 public:
  explicit ConstKernel(const KernelConstruction& c) : value_(c.device.CopyFromHost(c.attr<Tensor>("value"))) {}
  void Compute(KernelContext& ctx) override { ctx.SetOutput(0, value_); }

 private:
  Tensor value_;
};

[[noreturn]] void FailUnfed(KernelContext& ctx) {
  throw InvalidArgumentError(StrCat("You must feed a value for placeholder tensor '", ctx.node().name(),
                                    "' with dtype ", ctx.node().output_dtype(0), " and shape ",
                                    ctx.node().output_shape(0)));
}

void PassDefault(KernelContext& ctx) { ctx.SetOutput(0, ctx.input(0)); }

void Fill(KernelContext& ctx) {
  const Tensor& value = ctx.input(1);
  if (!value.shape().IsScalar()) {
    throw InvalidArgumentError(StrCat("the value to fill with must be a scalar; got shape ", value.shape()));
  }
  Tensor& out = ctx.AllocateOutput(0, Shape(ops::IntegerValues(ctx.input(0))));
  cpu::ForElements(value.dtype(), "Fill", [&]<typename T>(T) {
    T* to = static_cast<T*>(out.raw_data());
    std::fill(to, to + out.num_elements(), *static_cast<const T*>(value.raw_data()));
    return 0;
  });
}

void Range(KernelContext& ctx) {
  const Tensor& start = ctx.input(0);
  const int64_t n = ops::RangeLength(start, ctx.input(1), ctx.input(2));
  Tensor& out = ctx.AllocateOutput(0, Shape{n});
  cpu::ForNumbers(start.dtype(), "Range", [&]<typename T>(T) {
    if constexpr (!std::is_same_v<T, bfloat16>) {
      const T first = start.scalar<T>();
      const T delta = ctx.input(2).scalar<T>();
      T* to = out.data<T>();
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(first + static_cast<T>(i) * delta);
    }
    return 0;
  });
}

Tensor ZerosOfList(const Tensor& value) {
  std::vector<Tensor> zeros;  // the last one first
  for (TensorList rest = TensorListOf(value); rest.size() > 0; rest = rest.PopBack()) {
    const Tensor& element = rest.back();
    zeros.push_back(element.dtype() == DType::kVariant ? ZerosOfList(element)
                                                       : Tensor::Zeros(element.dtype(), element.shape()));
  }
  TensorList list;
  for (; !zeros.empty(); zeros.pop_back()) list = list.PushBack(zeros.back());
  return MakeTensorList(list);
}

void ZerosLike(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.dtype() == DType::kVariant) return ctx.SetOutput(0, ZerosOfList(x));
  if (x.dtype() == DType::kString) {
    ctx.AllocateOutput(0, x.shape());
    return;
  }
  Tensor& y = ctx.ForwardInputOrAllocate(0, 0, x.shape());
  std::memset(y.raw_data(), 0, y.bytes());
}

void OnesLike(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  Tensor& y = ctx.ForwardInputOrAllocate(0, 0, x.shape());
  if (x.dtype() == DType::kBool) {
    std::fill(y.data<bool>(), y.data<bool>() + y.num_elements(), true);
    return;
  }
  cpu::ForAllNumbers(x.dtype(), "OnesLike", [&]<typename T>(T) {
    std::fill(y.data<T>(), y.data<T>() + y.num_elements(), static_cast<T>(cpu::Wide<T>(1)));
    return 0;
  });
}

}  // namespace

void RegisterConstantKernels(KernelRegistry& registry) {
  registry.Register<ConstKernel>("Const", "CPU");
  registry.RegisterFn("Placeholder", "CPU", [](KernelContext& ctx) { FailUnfed(ctx); });
  registry.RegisterFn("PlaceholderWithDefault", "CPU", PassDefault);
  registry.RegisterFn("Fill", "CPU", Fill);
  registry.RegisterFn("Range", "CPU", Range);
  registry.RegisterFn("ZerosLike", "CPU", ZerosLike);
  registry.RegisterFn("OnesLike", "CPU", OnesLike);
}

}  // namespace cohort
