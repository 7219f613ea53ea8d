#include "cohort/runtime/kernels.h"

namespace cohort {
namespace {

class ArgKernel final : public OpKernel {
 public:
  explicit ArgKernel(const KernelConstruction& c) : index_(static_cast<size_t>(c.attr<int64_t>("index"))) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.step().args[index_];
    ctx.SetOutput(0, value.space() == ctx.allocator().space() ? value : ctx.device().CopyFromHost(value));
  }

 private:
  const size_t index_;
};

class RetvalKernel final : public OpKernel {
 public:
  explicit RetvalKernel(const KernelConstruction& c) : index_(static_cast<size_t>(c.attr<int64_t>("index"))) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(0);
    ctx.step().rets[index_] = value.space() == MemorySpace::kHost ? value : ctx.device().CopyToHost(value);
  }

 private:
  const size_t index_;
};

class SendKernel final : public OpKernel {
 public:
  explicit SendKernel(const KernelConstruction& c) : edge_(static_cast<EdgeId>(c.attr<int64_t>("edge"))) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(0);
    ctx.step().rendezvous->Send(edge_, value.space() == MemorySpace::kHost ? value : ctx.device().CopyToHost(value));
  }

 private:
  const EdgeId edge_;
};

class RecvKernel final : public AsyncOpKernel {
 public:
  explicit RecvKernel(const KernelConstruction& c) : edge_(static_cast<EdgeId>(c.attr<int64_t>("edge"))) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    ctx.step().rendezvous->RecvAsync(edge_, [&ctx, done = std::move(done)](const Status& status, const Tensor& value) {
      if (!status.ok()) return done(status);
      try {
        const bool there = value.space() == ctx.allocator().space() || value.dtype() == DType::kString;
        ctx.SetOutput(0, there ? value : ctx.device().CopyFromHost(value));
      } catch (...) {
        return done(Status::FromCurrentException());
      }
      done(Status());
    });
  }

 private:
  const EdgeId edge_;
};

}  // namespace

void RegisterRuntimeKernels(KernelRegistry& registry) {
  for (const char* device : {"CPU", "TEST"}) {
    registry.Register<ArgKernel>("_Arg", device);
    registry.Register<RetvalKernel>("_Retval", device);
    registry.Register<SendKernel>("_Send", device);
    registry.Register<RecvKernel>("_Recv", device);
  }
}

}  // namespace cohort
