// Kernels of step clocks (runtime/data_flow/step_clock.h).
#include <memory>
#include <utility>

#include "cohort/runtime/data_flow/step_clock.h"
#include "cohort/runtime/kernels/runtime_kernels.h"

namespace cohort {
namespace {

std::shared_ptr<StepClockResource> ClockOf(const KernelContext& ctx) {
  return ResourceOf<StepClockResource>(ctx.input(0)).shared_from_this();
}

// Outputs the handle of the clock (container, shared_name or the node's name). Makes the clock if there is none.
class StepClockHandleKernel final : public OpKernel {
 public:
  explicit StepClockHandleKernel(const KernelConstruction& c)
      : container_(c.attr<std::string>("container")), name_(c.attr<std::string>("shared_name")) {
    if (name_.empty()) name_ = c.node.name();
  }
  void Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, MakeResourceHandle(ctx.device().resources().LookupOrCreate<StepClockResource>(
                         container_, name_, [this] { return std::make_shared<StepClockResource>(name_); })));
  }

 private:
  const std::string container_;
  std::string name_;
};

class StepClockJoinKernel final : public AsyncOpKernel {
 public:
  explicit StepClockJoinKernel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override { ClockOf(ctx)->Join(PendingKernel(ctx, std::move(done))); }
};

class StepClockTickKernel final : public AsyncOpKernel {
 public:
  explicit StepClockTickKernel(const KernelConstruction& c) : limit_(c.attr<int64_t>("limit")) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    ClockOf(ctx)->Tick(PendingKernel(ctx, std::move(done)), limit_, ctx.input(1).scalar<int64_t>());
  }

 private:
  const int64_t limit_;
};

void TakeStaleness(KernelContext& ctx) { ctx.SetOutput(0, Tensor::Vector(ClockOf(ctx)->TakeStaleness())); }

}  // namespace

void RegisterStepClockKernels(KernelRegistry& registry) {
  registry.RegisterHost<StepClockHandleKernel>("StepClock");
  registry.RegisterHost<StepClockJoinKernel>("StepClockJoin");
  registry.RegisterHost<StepClockTickKernel>("StepClockTick");
  registry.RegisterHostFn("StepClockTakeStaleness", TakeStaleness);
}

}  // namespace cohort
