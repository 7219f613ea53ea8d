// The kernels of ops with one operand, and Cast. Their launches are in unary.cu.
#include <memory>

#include "cohort/backends/cuda/kernels/dtypes.h"
#include "cohort/backends/cuda/kernels/integer_checks.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/unary.cu.h"

namespace cohort::cuda {
namespace {

UnaryArgs Prepare(KernelContext& ctx) {
  const Shape shape = ctx.input(0).shape();
  const void* x = ctx.input(0).raw_data();
  Tensor& y = ctx.ForwardInputOrAllocate(0, 0, shape);
  return {x, y.raw_data(), y.num_elements()};
}

class UnaryKernel final : public OpKernel {
 public:
  UnaryKernel(UnaryOp op, ElementType type) : op_(op), type_(type) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const UnaryArgs args = Prepare(ctx);
    if (args.n > 0) LaunchUnary(call.driver(), call.stream(), op_, type_, args);
  }

 private:
  const UnaryOp op_;
  const ElementType type_;
};

// 1 / x of integers. 1 / 0 is an error.
class IntegerReciprocalKernel final : public OpKernel {
 public:
  explicit IntegerReciprocalKernel(ElementType type) : type_(type) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Shape shape = ctx.input(0).shape();
    CheckIntegers(call, ValueCheck::kNotZero, ctx.input(0), [shape](int64_t position, int64_t) {
      return Status(Code::kInvalidArgument, StrCat("integer division by zero: element ", position, " of ", shape));
    });
    const UnaryArgs args = Prepare(ctx);
    if (args.n > 0) LaunchUnary(call.driver(), call.stream(), UnaryOp::kReciprocal, type_, args);
  }

 private:
  const ElementType type_;
};

class CastKernel final : public OpKernel {
 public:
  CastKernel(ElementType from, ElementType to) : from_(from), to_(to) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    if (from_ == to_) return ctx.SetOutput(0, ctx.input(0));
    const UnaryArgs args = Prepare(ctx);
    if (args.n > 0) LaunchCast(call.driver(), call.stream(), from_, to_, args);
  }

 private:
  const ElementType from_;
  const ElementType to_;
};

using TypeFn = ElementType (*)(DType dtype, const std::string& op);

void Register(KernelRegistry& registry, const char* name, UnaryOp op, TypeFn type_of) {
  registry.Register(name, kGpu, [op, type_of](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    return std::make_unique<UnaryKernel>(op, type_of(c.node.input(0).dtype(), c.node.op_name()));
  });
}

std::unique_ptr<OpKernel> MakeReciprocal(const KernelConstruction& c) {
  const DType dtype = c.node.input(0).dtype();
  const ElementType type = NumberType(dtype, c.node.op_name());
  if (IsInteger(dtype)) return std::make_unique<IntegerReciprocalKernel>(type);
  return std::make_unique<UnaryKernel>(UnaryOp::kReciprocal, type);
}

std::unique_ptr<OpKernel> MakeCast(const KernelConstruction& c) {
  return std::make_unique<CastKernel>(NumberOrBoolType(c.node.input(0).dtype(), c.node.op_name()),
                                      NumberOrBoolType(c.node.output_dtype(0), c.node.op_name()));
}

}  // namespace

void RegisterUnaryKernels(KernelRegistry& registry) {
  Register(registry, "Neg", UnaryOp::kNeg, NumberType);
  Register(registry, "Abs", UnaryOp::kAbs, NumberType);
  Register(registry, "Sign", UnaryOp::kSign, NumberType);
  Register(registry, "Square", UnaryOp::kSquare, NumberType);
  Register(registry, "Round", UnaryOp::kRound, NumberType);
  registry.Register("Reciprocal", kGpu, MakeReciprocal);
  Register(registry, "Sqrt", UnaryOp::kSqrt, FloatingType);
  Register(registry, "Rsqrt", UnaryOp::kRsqrt, FloatingType);
  Register(registry, "Floor", UnaryOp::kFloor, FloatingType);
  Register(registry, "Ceil", UnaryOp::kCeil, FloatingType);
  Register(registry, "Exp", UnaryOp::kExp, FloatingType);
  Register(registry, "Expm1", UnaryOp::kExpm1, FloatingType);
  Register(registry, "Log", UnaryOp::kLog, FloatingType);
  Register(registry, "Log1p", UnaryOp::kLog1p, FloatingType);
  Register(registry, "Sin", UnaryOp::kSin, FloatingType);
  Register(registry, "Cos", UnaryOp::kCos, FloatingType);
  Register(registry, "Tan", UnaryOp::kTan, FloatingType);
  Register(registry, "Erf", UnaryOp::kErf, FloatingType);
  Register(registry, "IsNan", UnaryOp::kIsNan, FloatingType);
  Register(registry, "IsInf", UnaryOp::kIsInf, FloatingType);
  Register(registry, "IsFinite", UnaryOp::kIsFinite, FloatingType);
  registry.Register("LogicalNot", kGpu, [](const KernelConstruction&) -> std::unique_ptr<OpKernel> {
    return std::make_unique<UnaryKernel>(UnaryOp::kLogicalNot, ElementType::kBool);
  });
  registry.Register("Cast", kGpu, MakeCast);
}

}  // namespace cohort::cuda
