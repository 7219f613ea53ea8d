// The kernels of Select, SelectV2 and ClipByValue. Their launches are in select.cu.
#include <memory>

#include "cohort/backends/cuda/kernels/binary_call.h"
#include "cohort/backends/cuda/kernels/dtypes.h"
#include "cohort/backends/cuda/kernels/host_fallback.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/select.cu.h"

namespace cohort::cuda {
namespace {

SelectArgs OperandsOf(const KernelContext& ctx) {
  SelectArgs args{};
  args.condition = static_cast<const bool*>(ctx.input(0).raw_data());
  args.t = ctx.input(1).raw_data();
  args.e = ctx.input(2).raw_data();
  return args;
}

void Launch(const CudaCall& call, SelectArgs args, Tensor& out) {
  args.out = out.raw_data();
  args.n = out.num_elements();
  if (args.n > 0) LaunchSelect(call.driver(), call.stream(), DTypeSize(out.dtype()), args);
}

// All three operands broadcast.
class SelectV2Kernel final : public OpKernel {
 public:
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Shape c = ctx.input(0).shape(), t = ctx.input(1).shape(), e = ctx.input(2).shape();
    const Shape shape = BroadcastShapes(c, BroadcastShapes(t, e));
    SelectArgs args = OperandsOf(ctx);
    const int64_t n = shape.num_elements();
    const Shape* const shapes[] = {&c, &t, &e};
    for (int o = 0; o < 3; ++o) {
      args.steps[o] = shapes[o]->num_elements() == 1 && n > 1 ? 0 : 1;
      if (args.steps[o] == 1 && shapes[o]->num_elements() != n) args.broadcasts = true;
    }
    if (args.broadcasts && n > 0) args.dims = DimsOf(PlanBroadcast<3>(shape, {&c, &t, &e}));
    Launch(call, args, Allocate(ctx, shape, t, e));
  }

 private:
  // Uses the memory of an operand of the result's shape, because its elements stand at the same places as the result's.
  static Tensor& Allocate(KernelContext& ctx, const Shape& shape, const Shape& t, const Shape& e) {
    if (t == shape && e == shape) return ctx.ForwardInputOrAllocate({1, 2}, 0, shape);
    if (t == shape) return ctx.ForwardInputOrAllocate(1, 0, shape);
    if (e == shape) return ctx.ForwardInputOrAllocate(2, 0, shape);
    return ctx.AllocateOutput(0, shape);
  }
};

// The condition is a scalar, one flag a row, or has the shape of the values.
class SelectKernel final : public OpKernel {
 public:
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Shape c = ctx.input(0).shape(), shape = ctx.input(1).shape();
    if (ctx.input(2).shape() != shape) {
      throw InvalidArgumentError(
          StrCat("t of shape ", shape, " and e of shape ", ctx.input(2).shape(), " must have one shape"));
    }
    const bool rows = c.rank() == 1 && shape.rank() > 1 && c.dim(0) == shape.dim(0);
    if (!c.IsScalar() && c != shape && !rows) {
      throw InvalidArgumentError(StrCat("the condition of shape ", c,
                                        " must be a scalar, one flag a row or have the shape of the values, ", shape));
    }
    SelectArgs args = OperandsOf(ctx);
    args.steps[0] = c.IsScalar() ? 0 : 1;
    if (rows && shape.num_elements() > 0) {
      args.broadcasts = true;
      const int64_t row = shape.num_elements() / shape.dim(0);
      args.dims = {2, {Divider(shape.dim(0)), Divider(row)}, {{1, 0}, {row, 1}, {row, 1}}};
    }
    Launch(call, args, ctx.ForwardInputOrAllocate({1, 2}, 0, shape));
  }
};

template <typename Kernel>
void RegisterChoice(KernelRegistry& registry, const char* op) {
  registry.Register(op, kGpu, [](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    if (DTypeSize(c.node.input(1).dtype()) == 0)
      return MakeHostFallback(KernelRegistry::Global(), c);  // objects lie in host memory
    return std::make_unique<Kernel>();
  });
}

class ClipKernel final : public OpKernel {
 public:
  explicit ClipKernel(const KernelConstruction& c) : type_(NumberType(c.node.input(0).dtype(), c.node.op_name())) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Shape shape = ctx.input(0).shape();
    ClipArgs args{};
    args.x = ctx.input(0).raw_data();
    args.low = ctx.input(1).raw_data();
    args.high = ctx.input(2).raw_data();
    args.low_step = Step(ctx.input(1).shape(), shape);
    args.high_step = Step(ctx.input(2).shape(), shape);
    Tensor& out = ctx.ForwardInputOrAllocate(0, 0, shape);
    args.out = out.raw_data();
    args.n = out.num_elements();
    if (args.n > 0) LaunchClip(call.driver(), call.stream(), type_, args);
  }

 private:
  static int Step(const Shape& bound, const Shape& x) {
    if (bound.IsScalar()) return 0;
    if (bound == x) return 1;
    throw InvalidArgumentError(StrCat("a bound must be a scalar or have the shape ", x, "; got ", bound));
  }
  const ElementType type_;
};

}  // namespace

void RegisterSelectKernels(KernelRegistry& registry) {
  RegisterChoice<SelectV2Kernel>(registry, "SelectV2");
  RegisterChoice<SelectKernel>(registry, "Select");
  registry.Register<ClipKernel>("ClipByValue", kGpu);
}

}  // namespace cohort::cuda
