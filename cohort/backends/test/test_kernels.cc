// What a kernel for TEST does when it is called, in this order: it checks that its inputs lie where the op wants them,
// allocates its outputs, notes addresses in a TestWork, and puts that on the compute stream. When its turn comes, the
// work makes host views of the addresses (a TestHostRun), runs the CPU's kernel, and copies the results.
#include "cohort/backends/test/test_kernels.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "cohort/backends/test/test_device.h"
#include "cohort/backends/test/test_work.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/output_shapes.h"
#include "cohort/device/variable_kernels.h"

namespace cohort {
namespace {

// Ops whose kernels pass on their inputs or throw, and never read elements.
constexpr std::array<std::string_view, 8> kReferenceOps = {
    "ExpandDims", "Identity", "IdentityN",   "Placeholder", "PlaceholderWithDefault",
    "Reshape",    "Squeeze",  "StopGradient"};

bool IsObject(DType dtype) { return DTypeSize(dtype) == 0; }
bool InputOnHost(const Node& node, int i) { return node.input_arg(i).host_memory || IsObject(node.input(i).dtype()); }
bool OutputOnHost(const Node& node, int i) { return node.output_arg(i).host_memory || IsObject(node.output_dtype(i)); }

// An accelerator's kernel would read memory that does not exist.
void CheckMemory(const KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const bool wants_host = InputOnHost(ctx.node(), i);
    if (ctx.input(i).space() == (wants_host ? MemorySpace::Host() : ctx.device().allocator().space())) continue;
    throw InternalError(StrCat("[test device] expected input ", i, " of ", ctx.node().Describe(), " in ",
                               wants_host ? "host" : "device", " memory; got it in ", ctx.input(i).space().ToString()));
  }
}

void Enqueue(TestDevice& device, std::shared_ptr<const TestWork> work) {
  device.compute_stream()->Enqueue([work = std::move(work)] { work->Run(); });
}

// Most ops.
class EnqueuedKernel final : public OpKernel {
 public:
  EnqueuedKernel(const Node& node, std::unique_ptr<OpKernel> kernel)
      : kernel_(std::move(kernel)), updates_(node.op().updates_variable()) {}

  void Compute(KernelContext& ctx) override {
    CheckMemory(ctx);
    auto work = std::make_shared<TestWork>(*kernel_, ctx);
    const std::vector<Shape> shapes = ctx.num_outputs() == 0 ? std::vector<Shape>() : OutputShapes(ctx);
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      const Shape& shape = shapes[static_cast<size_t>(i)];
      if (!shape.IsFullyDefined()) {
        throw InternalError(StrCat("[test device] expected a shape rule that knows output ", i, " of ",
                                   ctx.node().Describe(), " before it runs, or the trait data_dependent_shape; got ",
                                   shape));
      }
      work->AddOutput(ctx.AllocateOutput(i, shape));
    }
    std::vector<int> handles;
    std::vector<VariableResource*> variables;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      if (ctx.input(i).dtype() != DType::kResource) continue;
      handles.push_back(i);
      variables.push_back(&ResourceOf<VariableResource>(ctx.input(i)));
    }
    updates_ ? Update(ctx, handles, variables, std::move(work)) : Read(ctx, handles, variables, std::move(work));
  }

 private:
  static void Read(KernelContext& ctx, const std::vector<int>& handles, const std::vector<VariableResource*>& variables,
                   std::shared_ptr<TestWork> work) {
    std::vector<Tensor> values;  // held until the work is enqueued, so that no update goes before it in place
    for (size_t k = 0; k < handles.size(); ++k) {
      values.push_back(variables[k]->Read());
      work->AddVariable({handles[k], *variables[k], values.back()});
    }
    Enqueue(TestDeviceOf(ctx), std::move(work));
  }

  static void Update(KernelContext& ctx, const std::vector<int>& handles,
                     const std::vector<VariableResource*>& variables, std::shared_ptr<TestWork> work) {
    VariableResource::UpdateTogether(variables, [&](std::span<const Tensor> olds, std::span<Tensor> outs) {
      for (size_t k = 0; k < handles.size(); ++k) {
        TestVariablePlace place(handles[k], *variables[k], olds[k]);
        place.out.emplace(outs[k]);
        work->AddVariable(std::move(place));
      }
      Enqueue(TestDeviceOf(ctx), work);
    });
  }

  const std::unique_ptr<OpKernel> kernel_;
  const bool updates_;
};

std::vector<Tensor> HostViews(const KernelContext& ctx) {
  std::vector<Tensor> views;
  for (int i = 0; i < ctx.num_inputs(); ++i) views.push_back(TestPlace(ctx.input(i)).View());
  return views;
}

// Puts copies of what a CPU kernel has made of views into the outputs.
void SetOutputs(KernelContext& ctx, const TestHostRun& run) {
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    const Tensor& value = run.output(i);
    if (IsObject(value.dtype())) {
      ctx.SetOutput(i, value);
    } else {
      const Tensor copy = value.Clone();  // it may be a view of an input
      ctx.SetOutput(i, OutputOnHost(ctx.node(), i) ? copy : ctx.device().CopyFromHostAsync(copy));
    }
  }
}

// Ops that need values in device memory before they can return.
class WaitingKernel final : public OpKernel {
 public:
  explicit WaitingKernel(std::unique_ptr<OpKernel> kernel) : kernel_(std::move(kernel)) {}

  void Compute(KernelContext& ctx) override {
    CheckMemory(ctx);
    TestDeviceOf(ctx).Synchronize();
    TestErrorOf(ctx).status().ThrowIfError();
    TestHostRun run(ctx.node(), TestDeviceOf(ctx).host(), ctx.step(), HostViews(ctx));
    kernel_->Compute(run.context());
    SetOutputs(ctx, run);
  }

 private:
  const std::unique_ptr<OpKernel> kernel_;
};

// Does the same for a CPU kernel that waits.
class WaitingAsyncKernel final : public AsyncOpKernel {
 public:
  explicit WaitingAsyncKernel(std::unique_ptr<OpKernel> kernel) : kernel_(std::move(kernel)) {}

  void ComputeAsync(KernelContext& ctx, Done done) override {
    CheckMemory(ctx);
    TestDeviceOf(ctx).Synchronize();
    TestErrorOf(ctx).status().ThrowIfError();
    const auto run = std::make_shared<TestHostRun>(ctx.node(), TestDeviceOf(ctx).host(), ctx.step(), HostViews(ctx));
    kernel_->AsAsync()->ComputeAsync(run->context(), [&ctx, run, done = std::move(done)](const Status& status) {
      if (status.ok()) SetOutputs(ctx, *run);
      done(status);
    });
  }

 private:
  const std::unique_ptr<OpKernel> kernel_;
};

// The value becomes the variable's in a buffer of its own, so that the step's failure can still leave the old one.
void Assign(KernelContext& ctx) {
  auto& variable = ResourceOf<VariableResource>(ctx.input(0));
  const Tensor& value = ctx.input(1);
  StepError& error = TestErrorOf(ctx);
  CheckMemory(ctx);
  TestDevice& device = TestDeviceOf(ctx);
  const CancellationManager* cancellation = ctx.step().cancellation;
  const bool objects = IsObject(value.dtype());
  if (!objects && variable.initialized() && variable.value_shape() == value.shape() &&
      variable.dtype() == value.dtype()) {
    variable.Update([&](const Tensor& old, Tensor& out) {
      if (old.shape() != value.shape()) {
        throw AbortedError(StrCat("[test device] expected ", value.shape(), " as the shape of variable '",
                                  variable.name(), "'; another step has made it ", old.shape(), " meanwhile"));
      }
      device.compute_stream()->Enqueue([&error, cancellation, to = TrueAddress(out), from = TrueAddress(value),
                                        instead = TrueAddress(old), bytes = value.bytes()] {
        const bool runs = error.MayRun(cancellation);
        CopyTestBytes(to, runs ? from : instead, bytes);
        if (runs) error.CountUpdate();
      });
    });
    return;
  }
  // The stream has no old value of this shape to keep, or cannot copy objects. First finds out whether the step has
  // failed.
  device.Synchronize();
  if (!error.MayRun(cancellation)) return;
  if (objects) {
    variable.Assign(value);
    return error.CountUpdate();
  }
  const Tensor copy(value.dtype(), value.shape(), device.allocator());
  device.compute_stream()->Enqueue(
      [to = TrueAddress(copy), from = TrueAddress(value), bytes = value.bytes()] { CopyTestBytes(to, from, bytes); });
  variable.Assign(copy);
  error.CountUpdate();
}

void IsInitialized(KernelContext& ctx) {
  const Tensor answer = Tensor::Scalar(ResourceOf<VariableResource>(ctx.input(0)).initialized());
  ctx.SetOutput(0, OutputOnHost(ctx.node(), 0) ? answer : ctx.device().CopyFromHostAsync(answer));
}

// Returns true if the CPU's kernel can use the tensors of the device directly.
bool AnswersAtOnce(const Node& node) {
  if (std::find(kReferenceOps.begin(), kReferenceOps.end(), node.op_name()) != kReferenceOps.end()) return true;
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (!OutputOnHost(node, i)) return false;
  }
  if (node.op().reads_shape_only()) return true;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!InputOnHost(node, i) || node.input(i).dtype() == DType::kResource) return false;
  }
  return true;
}

bool NeedsDeviceValues(const Node& node) {
  if (node.op().has_data_dependent_shape()) return true;
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (OutputOnHost(node, i)) return true;
  }
  return false;
}

std::unique_ptr<OpKernel> MakeKernel(const KernelRegistry& registry, const KernelConstruction& c) {
  auto& device = static_cast<TestDevice&>(c.device);
  std::unique_ptr<OpKernel> kernel = registry.Create({c.node, device.host(), c.functions});
  if (kernel->AsAsync() != nullptr) return std::make_unique<WaitingAsyncKernel>(std::move(kernel));
  if (AnswersAtOnce(c.node)) return kernel;
  if (NeedsDeviceValues(c.node)) return std::make_unique<WaitingKernel>(std::move(kernel));
  return std::make_unique<EnqueuedKernel>(c.node, std::move(kernel));
}

}  // namespace

void RegisterTestKernels(KernelRegistry& registry) {
  const std::string& type = TestBackend::Get().type();
  const std::vector<std::string> have = registry.OpsOn(type);
  const auto lacks = [&](const char* op) { return std::find(have.begin(), have.end(), op) == have.end(); };
  for (const std::string& op : registry.OpsOn(kHostDeviceType)) {
    if (!lacks(op.c_str())) continue;
    if (op == "VarHandleOp") {
      registry.Register<VarHandleKernel<VariableResource>>(op, type);
    } else if (op == "ReadVariableOp") {
      registry.RegisterFn(op, type, ReadVariable<VariableResource>);
    } else if (op == "VariableShape") {
      registry.RegisterFn(op, type, ShapeOfVariable<VariableResource>);
    } else if (op == "VarIsInitializedOp") {
      registry.RegisterFn(op, type, IsInitialized);
    } else if (op == "AssignVariableOp") {
      registry.RegisterFn(op, type, Assign);
    } else {
      registry.Register(op, type, [&registry](const KernelConstruction& c) { return MakeKernel(registry, c); });
    }
  }
}

}  // namespace cohort
