// The kernels of arithmetic with two operands, and of AddN. Their launches are in arithmetic.cu.
#include <algorithm>
#include <memory>

#include "cohort/backends/cuda/kernels/arithmetic.cu.h"
#include "cohort/backends/cuda/kernels/binary_call.h"
#include "cohort/backends/cuda/kernels/dtypes.h"
#include "cohort/backends/cuda/kernels/host_fallback.h"
#include "cohort/backends/cuda/kernels/integer_checks.h"
#include "cohort/backends/cuda/kernels/register.h"

namespace cohort::cuda {
namespace {

// Checks the operands of integers before they are computed. Null: no check.
using OperandCheck = void (*)(const CudaCall& call);

void RefuseZeros(const CudaCall& call) {
  const Tensor& divisor = call.ctx().input(1);
  const Shape a = call.ctx().input(0).shape(), b = divisor.shape();
  if (a.num_elements() == 0) return;
  CheckIntegers(call, ValueCheck::kNotZero, divisor, [a, b](int64_t position, int64_t) {
    return Status(Code::kInvalidArgument, StrCat("Integer division by zero: element ", position,
                                                 " of the divisor of shape ", b, " is 0; the dividend has shape ", a));
  });
}

void RefuseNegatives(const CudaCall& call) {
  const Tensor& power = call.ctx().input(1);
  const Shape a = call.ctx().input(0).shape(), b = power.shape();
  CheckIntegers(call, ValueCheck::kNotNegative, power, [a, b](int64_t position, int64_t value) {
    return Status(Code::kInvalidArgument,
                  StrCat("Integers to negative integer powers are not allowed: ", value, " at element ", position,
                         " of shape ", b, "; the base has shape ", a));
  });
}

class ArithmeticKernel final : public OpKernel {
 public:
  ArithmeticKernel(ArithmeticOp op, ElementType type, OperandCheck check) : op_(op), type_(type), check_(check) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    if (check_ != nullptr) check_(call);
    const BinaryArgs args = PrepareBinary(ctx);
    if (args.n > 0) LaunchArithmetic(call.driver(), call.stream(), op_, type_, args);
  }

 private:
  const ArithmeticOp op_;
  const ElementType type_;
  const OperandCheck check_;
};

void Register(KernelRegistry& registry, const char* name, ArithmeticOp op, OperandCheck check = nullptr) {
  registry.Register(name, kGpu, [op, check](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    const DType dtype = c.node.input(0).dtype();
    return std::make_unique<ArithmeticKernel>(op, NumberType(dtype, c.node.op_name()),
                                              IsInteger(dtype) ? check : nullptr);
  });
}

// Add also joins strings, which lie in host memory.
std::unique_ptr<OpKernel> MakeAdd(const KernelConstruction& c) {
  const DType dtype = c.node.input(0).dtype();
  if (dtype == DType::kString) return MakeHostFallback(KernelRegistry::Global(), c);
  return std::make_unique<ArithmeticKernel>(ArithmeticOp::kAdd, NumberType(dtype, c.node.op_name()), nullptr);
}

// Pow of uint8 does not exist, as on the CPU.
std::unique_ptr<OpKernel> MakePow(const KernelConstruction& c) {
  const DType dtype = c.node.input(0).dtype();
  const ElementType type = dtype == DType::kUint8 ? FloatingType(dtype, "Pow") : NumberType(dtype, "Pow");
  return std::make_unique<ArithmeticKernel>(ArithmeticOp::kPow, type, IsInteger(dtype) ? RefuseNegatives : nullptr);
}

class AddNKernel final : public OpKernel {
 public:
  explicit AddNKernel(const KernelConstruction& c) : type_(NumberType(c.node.input(0).dtype(), c.node.op_name())) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Shape shape = ctx.input(0).shape();
    const int count = ctx.num_inputs();
    for (int i = 1; i < count; ++i) {
      if (ctx.input(i).shape() != shape) {
        throw InvalidArgumentError(StrCat("Inputs to operation AddN must have the same size and shape. Input 0: ",
                                          shape, " != input ", i, ": ", ctx.input(i).shape()));
      }
    }
    if (count == 1) return ctx.SetOutput(0, ctx.input(0));
    std::vector<const void*> operands;
    operands.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) operands.push_back(ctx.input(i).raw_data());
    Tensor& out = ctx.ForwardInputOrAllocate(0, 0, shape);
    if (out.num_elements() == 0) return;
    // Each launch after the first one adds to what is there.
    AddNArgs args{{operands[0]}, 1, out.raw_data(), out.num_elements()};
    for (size_t next = 1; next < operands.size(); args.operands[0] = out.raw_data(), args.count = 1) {
      while (args.count < kMostAddends && next < operands.size()) args.operands[args.count++] = operands[next++];
      LaunchAddN(call.driver(), call.stream(), type_, args);
    }
  }

 private:
  const ElementType type_;
};

}  // namespace

void RegisterArithmeticKernels(KernelRegistry& registry) {
  Register(registry, "AddV2", ArithmeticOp::kAdd);
  registry.Register("Add", kGpu, MakeAdd);
  Register(registry, "Sub", ArithmeticOp::kSub);
  Register(registry, "Mul", ArithmeticOp::kMul);
  Register(registry, "RealDiv", ArithmeticOp::kDiv, RefuseZeros);
  Register(registry, "Div", ArithmeticOp::kDiv, RefuseZeros);
  Register(registry, "FloorDiv", ArithmeticOp::kFloorDiv, RefuseZeros);
  Register(registry, "FloorMod", ArithmeticOp::kFloorMod, RefuseZeros);
  Register(registry, "Maximum", ArithmeticOp::kMaximum);
  Register(registry, "Minimum", ArithmeticOp::kMinimum);
  Register(registry, "SquaredDifference", ArithmeticOp::kSquaredDifference);
  registry.Register("Pow", kGpu, MakePow);
  registry.Register<AddNKernel>("AddN", kGpu);
}

}  // namespace cohort::cuda
