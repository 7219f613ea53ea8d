// Kernels of step clocks (runtime/data_flow/step_clock.h) and of chief records (runtime/data_flow/chief_record.h).
#include <memory>
#include <utility>

#include "cohort/runtime/data_flow/chief_record.h"
#include "cohort/runtime/data_flow/step_clock.h"
#include "cohort/runtime/kernels/runtime_kernels.h"
#include "cohort/runtime/kernels/waiting_kernel.h"

namespace cohort {
namespace {

std::shared_ptr<StepClockResource> ClockOf(const KernelContext& ctx) {
  return ResourceOf<StepClockResource>(ctx.input(0)).shared_from_this();
}

std::shared_ptr<ChiefRecordResource> RecordOf(const KernelContext& ctx) {
  return ResourceOf<ChiefRecordResource>(ctx.input(0)).shared_from_this();
}

// Outputs the handle of a T (container, shared_name or the node's name). Makes the T if there is none.
template <typename T>
class SessionResourceHandleKernel final : public OpKernel {
 public:
  explicit SessionResourceHandleKernel(const KernelConstruction& c)
      : container_(c.attr<std::string>("container")), name_(c.attr<std::string>("shared_name")) {
    if (name_.empty()) name_ = c.node.name();
  }
  void Compute(KernelContext& ctx) override {
    ctx.SetOutput(0, MakeResourceHandle(ctx.device().resources().LookupOrCreate<T>(
                         container_, name_, [this] { return std::make_shared<T>(name_); })));
  }

 private:
  const std::string container_;
  std::string name_;
};

class StepClockJoinKernel final : public WaitingKernel<WaitKind::kOtherSteps> {
 public:
  explicit StepClockJoinKernel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override { ClockOf(ctx)->Join(PendingKernel(ctx, std::move(done))); }
};

class StepClockTickKernel final : public WaitingKernel<WaitKind::kOtherSteps> {
 public:
  explicit StepClockTickKernel(const KernelConstruction& c) : limit_(c.attr<int64_t>("limit")) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    ClockOf(ctx)->Tick(PendingKernel(ctx, std::move(done)), limit_, ctx.input(1).scalar<int64_t>());
  }

 private:
  const int64_t limit_;
};

class ChiefRecordHoldKernel final : public WaitingKernel<WaitKind::kOtherSteps> {
 public:
  explicit ChiefRecordHoldKernel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    RecordOf(ctx)->Hold(PendingKernel(ctx, std::move(done)),
                        {ctx.input(1).scalar<std::string>(), ctx.input(2).scalar<std::string>()});
  }
};

void ReadChiefRecord(KernelContext& ctx) {
  const ChiefRecordResource::Text text = RecordOf(ctx)->Read();
  ctx.SetOutput(0, Tensor::Scalar(text.holder));
  ctx.SetOutput(1, Tensor::Scalar(text.description));
}

void TakeStaleness(KernelContext& ctx) { ctx.SetOutput(0, Tensor::Vector(ClockOf(ctx)->TakeStaleness())); }

}  // namespace

void RegisterStepClockKernels(KernelRegistry& registry) {
  registry.RegisterHost<SessionResourceHandleKernel<StepClockResource>>("StepClock");
  registry.RegisterHost<SessionResourceHandleKernel<ChiefRecordResource>>("ChiefRecord");
  registry.RegisterHost<ChiefRecordHoldKernel>("ChiefRecordHold");
  registry.RegisterHostFn("ChiefRecordRead", ReadChiefRecord);
  registry.RegisterHost<StepClockJoinKernel>("StepClockJoin");
  registry.RegisterHost<StepClockTickKernel>("StepClockTick");
  registry.RegisterHostFn("StepClockTakeStaleness", TakeStaleness);
}

}  // namespace cohort
