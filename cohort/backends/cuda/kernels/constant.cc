// The kernels of constants, placeholders, Fill, Range, ZerosLike and OnesLike. Their launches are in constant.cu.
#include <memory>
#include <vector>

#include "cohort/backends/cuda/kernels/constant.cu.h"
#include "cohort/backends/cuda/kernels/dtypes.h"
#include "cohort/backends/cuda/kernels/host_fallback.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/device/tensor_list.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::cuda {
namespace {

class ConstKernel final : public OpKernel {
 public:
  explicit ConstKernel(const KernelConstruction& c) : value_(c.device.CopyFromHost(c.attr<Tensor>("value"))) {}
  void Compute(KernelContext& ctx) override { ctx.SetOutput(0, value_); }

 private:
  const Tensor value_;
};

[[noreturn]] void FailUnfed(KernelContext& ctx) {
  throw InvalidArgumentError(StrCat("You must feed a value for placeholder tensor '", ctx.node().name(),
                                    "' with dtype ", ctx.node().output_dtype(0), " and shape ",
                                    ctx.node().output_shape(0)));
}

void PassDefault(KernelContext& ctx) { ctx.SetOutput(0, ctx.input(0)); }

class FillKernel final : public OpKernel {
 public:
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor& value = ctx.input(1);
    if (!value.shape().IsScalar()) {
      throw InvalidArgumentError(StrCat("the value to fill with must be a scalar; got shape ", value.shape()));
    }
    Tensor& out = ctx.AllocateOutput(0, Shape(ops::IntegerValues(ctx.input(0))));
    if (out.num_elements() == 0) return;
    LaunchFill(call.driver(), call.stream(), DTypeSize(value.dtype()), value.raw_data(), out.raw_data(),
               out.num_elements());
  }
};

std::unique_ptr<OpKernel> MakeFill(const KernelConstruction& c) {
  if (c.node.output_dtype(0) == DType::kString) return MakeHostFallback(KernelRegistry::Global(), c);
  return std::make_unique<FillKernel>();
}

void Range(KernelContext& ctx) {
  const CudaCall call(ctx);
  const Tensor& start = ctx.input(0);
  const int64_t n = ops::RangeLength(start, ctx.input(1), ctx.input(2));
  Tensor& out = ctx.AllocateOutput(0, Shape{n});
  if (n == 0) return;
  LaunchRange(call.driver(), call.stream(), ElementTypeOf(start.dtype()), start.raw_data(), ctx.input(2).raw_data(),
              out.raw_data(), n);
}

// Returns zeros like an element of a list, in the same memory.
Tensor ZerosOfElement(const CudaCall& call, const Tensor& element) {
  if (element.space().is_host()) return Tensor::Zeros(element.dtype(), element.shape());
  Tensor zeros(element.dtype(), element.shape(), call.device().allocator());  // it may live longer than the step
  FillZero(call, zeros);
  return zeros;
}

Tensor ZerosOfList(const CudaCall& call, const Tensor& value) {
  std::vector<Tensor> zeros;  // the last one first
  for (TensorList rest = TensorListOf(value); rest.size() > 0; rest = rest.PopBack()) {
    const Tensor& element = rest.back();
    zeros.push_back(element.dtype() == DType::kVariant ? ZerosOfList(call, element) : ZerosOfElement(call, element));
  }
  TensorList list;
  for (; !zeros.empty(); zeros.pop_back()) list = list.PushBack(zeros.back());
  return MakeTensorList(list);
}

void ZerosLike(KernelContext& ctx) {
  const CudaCall call(ctx);
  const Tensor& x = ctx.input(0);
  if (x.dtype() == DType::kVariant) return ctx.SetOutput(0, ZerosOfList(call, x));
  if (x.dtype() == DType::kString) {
    ctx.AllocateOutput(0, x.shape());
    return;
  }
  const Shape shape = x.shape();
  FillZero(call, ctx.ForwardInputOrAllocate(0, 0, shape));
}

class OnesKernel final : public OpKernel {
 public:
  explicit OnesKernel(const KernelConstruction& c)
      : type_(NumberOrBoolType(c.node.input(0).dtype(), c.node.op_name())) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Shape shape = ctx.input(0).shape();
    Tensor& out = ctx.ForwardInputOrAllocate(0, 0, shape);
    if (out.num_elements() == 0) return;
    LaunchOnes(call.driver(), call.stream(), type_, out.raw_data(), out.num_elements());
  }

 private:
  const ElementType type_;
};

}  // namespace

void RegisterConstantKernels(KernelRegistry& registry) {
  registry.Register<ConstKernel>("Const", kGpu);
  registry.RegisterFn("Placeholder", kGpu, [](KernelContext& ctx) { FailUnfed(ctx); });
  registry.RegisterFn("PlaceholderWithDefault", kGpu, PassDefault);
  registry.Register("Fill", kGpu, MakeFill);
  registry.RegisterFn("Range", kGpu, Range);
  registry.RegisterFn("ZerosLike", kGpu, ZerosLike);
  registry.Register<OnesKernel>("OnesLike", kGpu);
}

}  // namespace cohort::cuda
