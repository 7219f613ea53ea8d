// Kernels of accumulators. An accumulator lies in host memory and is found in the task's ResourceManager
// (runtime/data_flow/accumulator.h). The ops whose names begin with "Resource" have a resource handle. The others have
// TensorFlow's older handle, which holds the container and the name as strings.
#include <memory>
#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/runtime/data_flow/accumulator.h"
#include "cohort/runtime/kernels/runtime_kernels.h"
#include "cohort/runtime/kernels/waiting_kernel.h"

namespace cohort {
namespace {

std::shared_ptr<AccumulatorResource> AccumulatorOf(const KernelContext& ctx) {
  const Tensor& handle = ctx.input(0);
  if (handle.dtype() == DType::kResource) return ResourceOf<AccumulatorResource>(handle).shared_from_this();
  if (handle.num_elements() != 2) {
    throw InvalidArgumentError(
        StrCat("[accumulator] expected a handle of two strings, container and name; got ", handle.ToString()));
  }
  const std::string& container = handle.data<std::string>()[0];
  const std::string& name = handle.data<std::string>()[1];
  auto found = std::dynamic_pointer_cast<AccumulatorResource>(ctx.device().resources().Lookup(container, name));
  if (found == nullptr) {
    throw NotFoundError(StrCat("[accumulator] expected an accumulator '", name, "' in the container '", container,
                               "' of ", ctx.device().name(), "; there is none: place the op on the device of the ",
                               "accumulator, and do not clear the container while it is in use"));
  }
  return found;
}

AccumulatorSpec AccumulatorSpecOf(const KernelConstruction& c) {
  AccumulatorSpec spec;
  spec.name = c.attr<std::string>("shared_name");
  if (spec.name.empty()) spec.name = c.node.name();
  spec.dtype = c.attr<DType>("dtype");
  spec.shape = c.attr<Shape>("shape");
  spec.mean = c.attr<std::string>("reduction_type") == "MEAN";
  return spec;
}

// Outputs the handle of the accumulator (container, shared_name or the node's name). Makes it if there is none. `kMake`
// makes a new accumulator.
template <std::shared_ptr<AccumulatorResource> (*kMake)(const AccumulatorSpec&)>
class AccumulatorHandleKernel final : public OpKernel {
 public:
  explicit AccumulatorHandleKernel(const KernelConstruction& c)
      : container_(c.attr<std::string>("container")),
        spec_(AccumulatorSpecOf(c)),
        by_name_(c.node.output_dtype(0) == DType::kString) {}

  void Compute(KernelContext& ctx) override {
    const auto accumulator = ctx.device().resources().LookupOrCreate<AccumulatorResource>(
        container_, spec_.name, [this] { return kMake(spec_); });
    accumulator->CheckIsAs(spec_);
    ctx.SetOutput(0, by_name_ ? Tensor::Vector(std::vector<std::string>{container_, spec_.name})
                              : MakeResourceHandle(accumulator));
  }

 private:
  const std::string container_;
  const AccumulatorSpec spec_;
  const bool by_name_;
};

class ApplyGradientKernel final : public WaitingKernel<WaitKind::kOtherSteps> {
 public:
  explicit ApplyGradientKernel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    AccumulatorOf(ctx)->Apply(PendingKernel(ctx, std::move(done)), ctx.input(1).scalar<int64_t>(),
                              {ctx.input(2), {}, {}});
  }
};

class SparseApplyGradientKernel final : public WaitingKernel<WaitKind::kOtherSteps> {
 public:
  explicit SparseApplyGradientKernel(const KernelConstruction& c) : knows_shape_(c.attr<bool>("has_known_shape")) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    AccumulatorOf(ctx)->Apply(PendingKernel(ctx, std::move(done)), ctx.input(1).scalar<int64_t>(),
                              {ctx.input(3), ctx.input(2), knows_shape_ ? ctx.input(4) : Tensor()});
  }

 private:
  const bool knows_shape_;
};

class TakeGradientKernel final : public WaitingKernel<WaitKind::kOtherSteps> {
 public:
  explicit TakeGradientKernel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    const std::shared_ptr<AccumulatorResource> accumulator = AccumulatorOf(ctx);
    const int values = ctx.num_outputs() == 1 ? 0 : 1;
    if (accumulator->spec().dtype != ctx.node().output_dtype(values)) {
      throw InvalidArgumentError(StrCat("[accumulator] expected the dtype ", accumulator->spec().dtype, " of ",
                                        accumulator->Describe(), "; got ", ctx.node().output_dtype(values)));
    }
    accumulator->Take(PendingKernel(ctx, std::move(done)), ctx.input(1).scalar<int32_t>());
  }
};

void NumAccumulated(KernelContext& ctx) {
  ctx.SetOutput(0, Tensor::Scalar(static_cast<int32_t>(AccumulatorOf(ctx)->num_accumulated())));
}

void NumStale(KernelContext& ctx) { ctx.SetOutput(0, Tensor::Scalar(AccumulatorOf(ctx)->num_stale())); }

void SetGlobalStep(KernelContext& ctx) { AccumulatorOf(ctx)->SetGlobalStep(ctx.input(1).scalar<int64_t>()); }

}  // namespace

void RegisterAccumulatorKernels(KernelRegistry& registry) {
  using Dense = AccumulatorHandleKernel<MakeDenseAccumulator>;
  registry.RegisterHost<Dense>("ConditionalAccumulator");
  registry.RegisterHost<Dense>("ResourceConditionalAccumulator");
  registry.RegisterHost<AccumulatorHandleKernel<MakeSparseAccumulator>>("SparseConditionalAccumulator");
  registry.RegisterHost<SparseApplyGradientKernel>("SparseAccumulatorApplyGradient");
  registry.RegisterHost<TakeGradientKernel>("SparseAccumulatorTakeGradient");
  for (const char* prefix : {"", "Resource"}) {
    registry.RegisterHost<ApplyGradientKernel>(StrCat(prefix, "AccumulatorApplyGradient"));
    registry.RegisterHost<TakeGradientKernel>(StrCat(prefix, "AccumulatorTakeGradient"));
    registry.RegisterHostFn(StrCat(prefix, "AccumulatorNumAccumulated"), NumAccumulated);
    registry.RegisterHostFn(StrCat(prefix, "AccumulatorSetGlobalStep"), SetGlobalStep);
  }
  registry.RegisterHostFn("AccumulatorNumStale", NumStale);
}

}  // namespace cohort
