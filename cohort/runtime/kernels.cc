#include "cohort/runtime/kernels.h"

#include "cohort/runtime/memory_placement.h"

namespace cohort {
namespace {

Tensor OnHost(KernelContext& ctx, const Tensor& value) {
  return value.space().is_host() ? value : ctx.device().CopyToHost(value);
}
// `value`, which came from elsewhere, where output 0 of the node is to lie.
Tensor Placed(KernelContext& ctx, Tensor value) {
  if (LiesInHostMemory(ctx.node().output(0))) return OnHost(ctx, value);
  return value.space() == ctx.allocator().space() ? std::move(value) : ctx.device().CopyFromHost(value);
}

// Values that a session was fed are the caller's; those of a function's arguments are given to its body.
class ArgKernel final : public OpKernel {
 public:
  explicit ArgKernel(const KernelConstruction& c)
      : index_(static_cast<size_t>(c.attr<int64_t>("index"))), take_(c.node.has_attr("_of_function")) {}
  void Compute(KernelContext& ctx) override {
    Tensor& value = ctx.step().args[index_];
    ctx.SetOutput(0, Placed(ctx, take_ ? std::move(value) : value));
  }

 private:
  const size_t index_;
  const bool take_;
};

// Results of a function stay in the memory where they are.
class RetvalKernel final : public OpKernel {
 public:
  explicit RetvalKernel(const KernelConstruction& c)
      : index_(static_cast<size_t>(c.attr<int64_t>("index"))), keep_(c.node.has_attr("_of_function")) {}
  void Compute(KernelContext& ctx) override {
    ctx.step().rets[index_] = keep_ ? ctx.input(0) : OnHost(ctx, ctx.input(0));
  }

 private:
  const size_t index_;
  const bool keep_;
};

class SendKernel final : public OpKernel {
 public:
  explicit SendKernel(const KernelConstruction& c) : edge_(static_cast<EdgeId>(c.attr<int64_t>("edge"))) {}
  void Compute(KernelContext& ctx) override { ctx.step().rendezvous->Send(edge_, OnHost(ctx, ctx.input(0))); }

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
        ctx.SetOutput(0, Placed(ctx, value));
      } catch (...) {
        return done(Status::FromCurrentException());
      }
      done(Status());
    });
  }

 private:
  const EdgeId edge_;
};

void ToHost(KernelContext& ctx) { ctx.SetOutput(0, OnHost(ctx, ctx.input(0))); }
void ToDevice(KernelContext& ctx) { ctx.SetOutput(0, ctx.device().CopyFromHost(ctx.input(0))); }

}  // namespace

void RegisterRuntimeKernels(KernelRegistry& registry) {
  if (registry.Has("_Arg", "CPU")) return;
  for (const char* device : {"CPU", "TEST"}) {
    registry.Register<ArgKernel>("_Arg", device);
    registry.Register<RetvalKernel>("_Retval", device);
    registry.Register<SendKernel>("_Send", device);
    registry.Register<RecvKernel>("_Recv", device);
    registry.RegisterFn("_ToHost", device, ToHost);
    registry.RegisterFn("_ToDevice", device, ToDevice);
    RegisterFunctionKernels(registry, device);
  }
}

}  // namespace cohort
