// Kernels of the nodes that the runtime adds: arguments, results, sends, receives, and copies between host and device.
// On a device with streams, the ones that need a value on the host have a second form, which waits for the copy without
// a thread.
#include "cohort/runtime/kernels/runtime_kernels.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/backend.h"
#include "cohort/runtime/kernels/waiting_kernel.h"
#include "cohort/runtime/placement/memory_placement.h"

namespace cohort {
namespace {

// If the device has streams, a kernel that needs a value on the host waits for the copy, so it is asynchronous. On any
// other device values already lie where they are needed, and the kernel is synchronous. So a plan of such kernels stays
// synchronous.
bool HasStreams(const KernelConstruction& c) { return c.device.backend().has_streams(); }

// Kernels take their inputs' dtypes for granted, and a value from another process may have any.
void CheckCame(const Tensor& value, DType expected, const char* what) {
  if (value.dtype() == expected) return;
  throw InvalidArgumentError(
      StrCat("[runtime] expected ", what, " of dtype ", expected, "; got ", value.dtype(), value.shape()));
}

// The argument of a partition or of a function. A value that was fed belongs to the caller and is shared. A function's
// argument is moved to the body.
class ArgKernel final : public OpKernel {
 public:
  explicit ArgKernel(const KernelConstruction& c)
      : index_(static_cast<size_t>(c.attr<int64_t>("index"))),
        dtype_(c.node.output_dtype(0)),
        take_(c.node.has_attr("_of_function")) {}
  void Compute(KernelContext& ctx) override {
    Tensor& value = ctx.step().args[index_];
    CheckCame(value, dtype_, "a fed value");
    ctx.SetOutput(0, PlacedAs(ctx, 0, take_ ? std::move(value) : value));
  }

 private:
  const size_t index_;
  const DType dtype_;
  const bool take_;
};

// An argument of a function that the body reads on the host. The caller may have it on the device.
class ArgToHostKernel final : public AsyncOpKernel {
 public:
  explicit ArgToHostKernel(const KernelConstruction& c) : index_(static_cast<size_t>(c.attr<int64_t>("index"))) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    const Tensor value = std::move(ctx.step().args[index_]);
    CopyToHostInStep(ctx, value, [&ctx, done = std::move(done)](const Status& status, Tensor copy) {
      ctx.SetOutput(0, std::move(copy));
      done(status);
    });
  }

 private:
  const size_t index_;
};

std::unique_ptr<OpKernel> MakeArg(const KernelConstruction& c) {
  const bool to_host = HasStreams(c) && c.node.has_attr("_of_function") && LiesInHostMemory(c.node.output(0));
  if (to_host) return std::make_unique<ArgToHostKernel>(c);
  return std::make_unique<ArgKernel>(c);
}

// Stores a result. A partition's result lies in host memory. A function's result stays in the memory in which it lies.
class RetvalKernel final : public OpKernel {
 public:
  explicit RetvalKernel(const KernelConstruction& c) : index_(static_cast<size_t>(c.attr<int64_t>("index"))) {}
  void Compute(KernelContext& ctx) override { ctx.step().rets[index_] = ctx.input(0); }

 private:
  const size_t index_;
};

class RetvalToHostKernel final : public AsyncOpKernel {
 public:
  explicit RetvalToHostKernel(const KernelConstruction& c) : index_(static_cast<size_t>(c.attr<int64_t>("index"))) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    CopyToHostInStep(ctx, ctx.input(0), [this, &ctx, done = std::move(done)](const Status& status, Tensor copy) {
      ctx.step().rets[index_] = std::move(copy);
      done(status);
    });
  }

 private:
  const size_t index_;
};

std::unique_ptr<OpKernel> MakeRetval(const KernelConstruction& c) {
  if (HasStreams(c) && !c.node.has_attr("_of_function")) return std::make_unique<RetvalToHostKernel>(c);
  return std::make_unique<RetvalKernel>(c);
}

class SendKernel final : public OpKernel {
 public:
  explicit SendKernel(const KernelConstruction& c) : edge_(static_cast<EdgeId>(c.attr<int64_t>("edge"))) {}
  void Compute(KernelContext& ctx) override { ctx.step().rendezvous->Send(edge_, ctx.input(0)); }

 private:
  const EdgeId edge_;
};

class SendFromDeviceKernel final : public AsyncOpKernel {
 public:
  explicit SendFromDeviceKernel(const KernelConstruction& c) : edge_(static_cast<EdgeId>(c.attr<int64_t>("edge"))) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    CopyToHostInStep(ctx, ctx.input(0), [this, &ctx, done = std::move(done)](const Status& status, const Tensor& copy) {
      if (!status.ok()) return done(status);
      try {
        ctx.step().rendezvous->Send(edge_, copy);
        ctx.step().rendezvous->Flush();  // the thread of the step may have left it, and a peer may wait for the value
      } catch (...) {
        return done(Status::FromCurrentException());
      }
      done(status);
    });
  }

 private:
  const EdgeId edge_;
};

std::unique_ptr<OpKernel> MakeSend(const KernelConstruction& c) {
  if (HasStreams(c)) return std::make_unique<SendFromDeviceKernel>(c);
  return std::make_unique<SendKernel>(c);
}

class RecvKernel final : public WaitingKernel<WaitKind::kValue> {
 public:
  explicit RecvKernel(const KernelConstruction& c)
      : edge_(static_cast<EdgeId>(c.attr<int64_t>("edge"))), dtype_(c.node.output_dtype(0)) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    ctx.step().rendezvous->RecvAsync(edge_,
                                     [this, &ctx, done = std::move(done)](const Status& status, const Tensor& value) {
                                       if (!status.ok()) return done(status);
                                       try {
                                         CheckCame(value, dtype_, "a received value");
                                         ctx.SetOutput(0, PlacedAs(ctx, 0, value));
                                       } catch (...) {
                                         return done(Status::FromCurrentException());
                                       }
                                       done(Status());
                                     });
  }

 private:
  const EdgeId edge_;
  const DType dtype_;
};

class ToHostKernel final : public AsyncOpKernel {
 public:
  explicit ToHostKernel(const KernelConstruction&) {}
  void ComputeAsync(KernelContext& ctx, Done done) override {
    CopyToHostInStep(ctx, ctx.input(0), [&ctx, done = std::move(done)](const Status& status, Tensor copy) {
      ctx.SetOutput(0, std::move(copy));
      done(status);
    });
  }
};

void ToDevice(KernelContext& ctx) { ctx.SetOutput(0, ctx.device().CopyFromHostAsync(ctx.input(0))); }

}  // namespace

void RegisterRuntimeKernels(KernelRegistry& registry) {
  if (registry.Has("_Arg", kHostDeviceType)) return;
  registry.RegisterHost("_Arg", MakeArg, KernelMemory::kEither);
  registry.RegisterHost("_Retval", MakeRetval, KernelMemory::kEither);
  registry.RegisterHost("_Send", MakeSend, KernelMemory::kEither);
  registry.RegisterHost<RecvKernel>("_Recv", KernelMemory::kEither);
  registry.RegisterHost<ToHostKernel>("_ToHost", KernelMemory::kEither);
  registry.RegisterHostFn("_ToDevice", ToDevice, KernelMemory::kEither);
  RegisterFunctionKernels(registry);
  RegisterTensorListKernels(registry);
  RegisterLookupTableKernels(registry);
  RegisterQueueKernels(registry);
  RegisterAccumulatorKernels(registry);
  RegisterStepClockKernels(registry);
  RegisterControlKernels(registry);
}

}  // namespace cohort
