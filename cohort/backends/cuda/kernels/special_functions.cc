// The kernels of inverse and hyperbolic functions, Atan2, Xdivy and Xlogy. Their launches are in special_functions.cu.
#include <memory>

#include "cohort/backends/cuda/kernels/binary_call.h"
#include "cohort/backends/cuda/kernels/dtypes.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/special_functions.cu.h"

namespace cohort::cuda {
namespace {

class SpecialKernel final : public OpKernel {
 public:
  SpecialKernel(SpecialFunction op, ElementType type) : op_(op), type_(type) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Shape shape = ctx.input(0).shape();
    const void* x = ctx.input(0).raw_data();
    Tensor& y = ctx.ForwardInputOrAllocate(0, 0, shape);
    const UnaryArgs args = {x, y.raw_data(), y.num_elements()};
    if (args.n > 0) LaunchSpecial(call.driver(), call.stream(), op_, type_, args);
  }

 private:
  const SpecialFunction op_;
  const ElementType type_;
};

class SpecialPairKernel final : public OpKernel {
 public:
  SpecialPairKernel(SpecialPair op, ElementType type) : op_(op), type_(type) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const BinaryArgs args = PrepareBinary(ctx);
    if (args.n > 0) LaunchSpecialPair(call.driver(), call.stream(), op_, type_, args);
  }

 private:
  const SpecialPair op_;
  const ElementType type_;
};

template <typename Kernel, typename Op>
void Register(KernelRegistry& registry, const char* name, Op op) {
  registry.Register(name, kGpu, [op](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    return std::make_unique<Kernel>(op, FloatingType(c.node.input(0).dtype(), c.node.op_name()));
  });
}

}  // namespace

void RegisterSpecialFunctionKernels(KernelRegistry& registry) {
  Register<SpecialKernel>(registry, "Asin", SpecialFunction::kAsin);
  Register<SpecialKernel>(registry, "Acos", SpecialFunction::kAcos);
  Register<SpecialKernel>(registry, "Atan", SpecialFunction::kAtan);
  Register<SpecialKernel>(registry, "Sinh", SpecialFunction::kSinh);
  Register<SpecialKernel>(registry, "Cosh", SpecialFunction::kCosh);
  Register<SpecialKernel>(registry, "Asinh", SpecialFunction::kAsinh);
  Register<SpecialKernel>(registry, "Acosh", SpecialFunction::kAcosh);
  Register<SpecialKernel>(registry, "Atanh", SpecialFunction::kAtanh);
  Register<SpecialPairKernel>(registry, "Atan2", SpecialPair::kAtan2);
  Register<SpecialPairKernel>(registry, "Xdivy", SpecialPair::kXdivy);
  Register<SpecialPairKernel>(registry, "Xlogy", SpecialPair::kXlogy);
}

}  // namespace cohort::cuda
