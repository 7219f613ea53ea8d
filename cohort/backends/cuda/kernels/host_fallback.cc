#include "cohort/backends/cuda/kernels/host_fallback.h"

#include <optional>
#include <utility>
#include <vector>

#include "cohort/backends/cuda/kernels/cuda_call.h"
#include "cohort/core/error.h"

namespace cohort::cuda {
namespace {

// Makes a KernelContext for one run of a CPU kernel, and owns what an executor would own: slots and use counts.
class HostRun {
 public:
  HostRun(KernelContext& ctx, Device& host, std::vector<Tensor> inputs)
      : num_inputs_(inputs.size()),
        slots_(std::move(inputs)),
        input_slots_(num_inputs_),
        uses_(num_inputs_ + static_cast<size_t>(ctx.num_outputs()), 2) {  // 2: not to be worked on in place
    slots_.resize(uses_.size());
    for (size_t i = 0; i < num_inputs_; ++i) input_slots_[i] = static_cast<int32_t>(i);
    context_.emplace(ctx.node(), host, ctx.step(), slots_.data(), input_slots_, slots_.data() + num_inputs_,
                     uses_.data());
    context_->SetCallInfo(ctx.mode(), ctx.in_update_gate());
  }
  KernelContext& context() { return *context_; }
  const Tensor& output(int i) const { return slots_[num_inputs_ + static_cast<size_t>(i)]; }

 private:
  const size_t num_inputs_;
  std::vector<Tensor> slots_;
  std::vector<int32_t> input_slots_;
  std::vector<int32_t> uses_;
  std::optional<KernelContext> context_;
};

// Waits for the device if an input lies there, and returns the inputs in host memory. Throws the step's error if a
// check of the step has failed.
std::vector<Tensor> HostInputs(KernelContext& ctx) {
  CudaDevice& device = CudaDeviceOf(ctx);
  std::vector<Tensor> inputs;
  bool waited = false;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    waited = waited || !ctx.input(i).space().is_host();
    inputs.push_back(device.CopyToHost(ctx.input(i)));
  }
  if (waited && ctx.step().error != nullptr) {
    // The copies are behind the work of the step. Its error words are read back by the event before them.
    if (device.error_words().WordOf(ctx) != nullptr) device.Synchronize();
    ctx.step().error->status().ThrowIfError();
  }
  return inputs;
}

void SetOutputs(KernelContext& ctx, const HostRun& run) {
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    const Tensor& value = run.output(i);
    if (DTypeSize(value.dtype()) == 0) {
      ctx.SetOutput(i, value);
    } else if (OutputOnHost(ctx.node(), i)) {
      ctx.SetOutput(i, value.Clone());  // it may be a view of an input
    } else {
      ctx.SetOutput(i, ctx.device().CopyFromHostAsync(value.Clone()));
    }
  }
}

class HostFallbackKernel final : public OpKernel {
 public:
  explicit HostFallbackKernel(std::unique_ptr<OpKernel> kernel) : kernel_(std::move(kernel)) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    HostRun run(ctx, call.device().host(), HostInputs(ctx));
    kernel_->Compute(run.context());
    SetOutputs(ctx, run);
  }

 private:
  const std::unique_ptr<OpKernel> kernel_;
};

class AsyncHostFallbackKernel final : public AsyncOpKernel {
 public:
  explicit AsyncHostFallbackKernel(std::unique_ptr<OpKernel> kernel) : kernel_(std::move(kernel)) {}

  void ComputeAsync(KernelContext& ctx, Done done) override {
    const CudaCall call(ctx);
    const auto run = std::make_shared<HostRun>(ctx, call.device().host(), HostInputs(ctx));
    kernel_->AsAsync()->ComputeAsync(run->context(), [&ctx, run, done = std::move(done)](const Status& status) {
      Status result = status;
      if (result.ok()) {
        try {
          SetOutputs(ctx, *run);
        } catch (...) {
          result = Status::FromCurrentException();
        }
      }
      done(result);
    });
  }

 private:
  const std::unique_ptr<OpKernel> kernel_;
};

std::unique_ptr<OpKernel> MakeOfHost(const KernelRegistry& registry, const KernelConstruction& c) {
  return registry.Create({c.node, static_cast<CudaDevice&>(c.device).host(), c.functions});
}

}  // namespace

std::unique_ptr<OpKernel> MakeHostFallback(const KernelRegistry& registry, const KernelConstruction& c) {
  std::unique_ptr<OpKernel> kernel = MakeOfHost(registry, c);
  if (kernel->AsAsync() != nullptr) return std::make_unique<AsyncHostFallbackKernel>(std::move(kernel));
  return std::make_unique<HostFallbackKernel>(std::move(kernel));
}

bool IsHostFallback(const OpKernel& kernel) {
  return dynamic_cast<const HostFallbackKernel*>(&kernel) != nullptr ||
         dynamic_cast<const AsyncHostFallbackKernel*>(&kernel) != nullptr;
}

std::unique_ptr<OpKernel> MakeHostReference(const KernelRegistry& registry, const KernelConstruction& c) {
  return MakeOfHost(registry, c);
}

}  // namespace cohort::cuda
