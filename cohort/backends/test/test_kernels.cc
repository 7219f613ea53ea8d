// The kernels for TEST. When such a kernel is called, it checks that its inputs are in the memory that the op needs,
// allocates its outputs, writes their addresses into a Work, and enqueues the Work on the compute stream. When the
// stream runs the Work, it makes host views of the addresses (HostRun), runs the CPU's kernel, and copies the results.
#include "cohort/backends/test/test_kernels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "cohort/backends/cpu/cpu_variable.h"
#include "cohort/backends/test/test_device.h"
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

TestDevice& DeviceOf(const KernelContext& ctx) { return static_cast<TestDevice&>(ctx.device()); }

// An accelerator's kernel would read memory that does not exist.
void CheckMemory(const KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const bool wants_host = InputOnHost(ctx.node(), i);
    if (ctx.input(i).space() == (wants_host ? MemorySpace::Host() : ctx.device().allocator().space())) continue;
    throw InternalError(StrCat("[test device] expected input ", i, " of ", ctx.node().Describe(), " in ",
                               wants_host ? "host" : "device", " memory; got it in ", ctx.input(i).space().ToString()));
  }
}

StepError& ErrorOf(const KernelContext& ctx) {
  if (ctx.step().error != nullptr) return *ctx.step().error;
  throw InternalError(
      StrCat("[test device] expected a step that keeps errors of its streams; got none for ", ctx.node().Describe()));
}

void CopyBytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

size_t BytesOf(DType dtype, const Shape& shape) { return static_cast<size_t>(shape.num_elements()) * DTypeSize(dtype); }

// A tensor as the work on a stream knows it: by its address if it lies in device memory.
struct Place {
  explicit Place(const Tensor& value)
      : dtype(value.dtype()),
        shape(value.shape()),
        address(value.space().is_host() ? nullptr : TrueAddress(value)),
        host(value.space().is_host() ? value : Tensor()) {}
  Tensor View() const { return host.defined() ? host : BorrowedView(dtype, shape, address); }
  // Throws InternalError if `value`, which the kernel has made, is of another dtype or shape.
  void CopyFrom(const Tensor& value, const char* what, int index) const {
    if (value.dtype() != dtype || value.shape() != shape) {
      throw InternalError(StrCat("[test device] expected ", what, " ", index, " as ", dtype, shape,
                                 ", as the op's shape rule says; the kernel made ", value.dtype(), value.shape()));
    }
    CopyBytes(address, value.raw_data(), value.bytes());
  }

  DType dtype;
  Shape shape;
  void* address;
  Tensor host;
};

// One run of a CPU kernel on views, with what an executor would keep for it.
class HostRun {
 public:
  HostRun(const Node& node, Device& host, const StepInfo& step, std::vector<Tensor> inputs)
      : step_(step),
        num_inputs_(inputs.size()),
        slots_(std::move(inputs)),
        input_slots_(num_inputs_),
        uses_(num_inputs_ + static_cast<size_t>(node.num_outputs()), 2) {  // 2: not to be worked on in place
    slots_.resize(uses_.size());
    for (size_t i = 0; i < num_inputs_; ++i) input_slots_[i] = static_cast<int32_t>(i);
    context_.emplace(node, host, step_, slots_.data(), input_slots_, slots_.data() + num_inputs_, uses_.data());
  }
  KernelContext& context() { return *context_; }
  const Tensor& output(int i) const { return slots_[num_inputs_ + static_cast<size_t>(i)]; }

 private:
  const StepInfo step_;
  const size_t num_inputs_;
  std::vector<Tensor> slots_;
  std::vector<int32_t> input_slots_;
  std::vector<int32_t> uses_;
  std::optional<KernelContext> context_;
};

// Returns the facts about the step that a CPU kernel needs. The step of a function's body may have ended when the work
// runs.
StepInfo StepForWork(const StepInfo& step) {
  StepInfo kept;
  kept.step_id = step.step_id;
  kept.cancellation = step.cancellation;
  return kept;
}

// A variable that the work reads or changes: the CPU's kernel gets a CpuVariable of the old value in its place.
struct VariablePlace {
  VariablePlace(int input, const VariableResource& variable, const Tensor& old)
      : input(input), name(variable.name()), declared(variable.shape()), old(old) {}

  std::shared_ptr<CpuVariable> Shadow() const {
    auto shadow = std::make_shared<CpuVariable>(name, old.dtype, declared);
    shadow->Assign(old.View().Clone());
    return shadow;
  }
  // Leaves the old value, as if the step had not changed it.
  void KeepOld() const {
    if (out) CopyBytes(out->address, old.address, BytesOf(old.dtype, old.shape));
  }

  int input;
  std::string name;
  Shape declared;
  Place old;
  std::optional<Place> out;  // where the new value is written; it may be the place of the old one
};

// The work of one run of a kernel on the compute stream. It keeps no device memory alive.
class Work {
 public:
  Work(OpKernel& kernel, const KernelContext& ctx)
      : kernel_(kernel),
        node_(ctx.node()),
        host_(DeviceOf(ctx).host()),
        step_(StepForWork(ctx.step())),
        error_(ErrorOf(ctx)),
        where_(ctx.Describe()) {
    for (int i = 0; i < ctx.num_inputs(); ++i) inputs_.emplace_back(ctx.input(i));
  }
  void AddOutput(const Tensor& value) { outputs_.emplace_back(value); }
  void AddVariable(VariablePlace variable) { variables_.push_back(std::move(variable)); }

  void Run() const {
    if (!error_.set()) {
      try {
        Compute();
        return;
      } catch (...) {
        const Status status = Status::FromCurrentException();
        error_.Set(Status(status.code(), StrCat(status.message(), "\n  ", where_)));
      }
    }
    for (const VariablePlace& variable : variables_) variable.KeepOld();
  }

 private:
  void Compute() const {
    std::vector<Tensor> inputs;
    for (const Place& input : inputs_) inputs.push_back(input.View());
    std::vector<std::shared_ptr<CpuVariable>> shadows;
    for (const VariablePlace& variable : variables_) {
      shadows.push_back(variable.Shadow());
      inputs[static_cast<size_t>(variable.input)] = MakeResourceHandle(shadows.back());
    }
    HostRun run(node_, host_, step_, std::move(inputs));
    kernel_.Compute(run.context());
    for (size_t i = 0; i < outputs_.size(); ++i) {
      outputs_[i].CopyFrom(run.output(static_cast<int>(i)), "output", static_cast<int>(i));
    }
    for (size_t i = 0; i < variables_.size(); ++i) {
      if (variables_[i].out) variables_[i].out->CopyFrom(shadows[i]->Read(), "variable", static_cast<int>(i));
    }
  }

  OpKernel& kernel_;
  const Node& node_;
  Device& host_;
  const StepInfo step_;
  StepError& error_;
  const std::string where_;
  std::vector<Place> inputs_;
  std::vector<Place> outputs_;
  std::vector<VariablePlace> variables_;
};

void Enqueue(TestDevice& device, std::shared_ptr<const Work> work) {
  device.compute_stream()->Enqueue([work = std::move(work)] { work->Run(); });
}

// Most ops.
class EnqueuedKernel final : public OpKernel {
 public:
  EnqueuedKernel(const Node& node, std::unique_ptr<OpKernel> kernel)
      : kernel_(std::move(kernel)), updates_(node.op().updates_variable()) {}

  void Compute(KernelContext& ctx) override {
    CheckMemory(ctx);
    auto work = std::make_shared<Work>(*kernel_, ctx);
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
                   std::shared_ptr<Work> work) {
    std::vector<Tensor> values;  // held until the work is enqueued, so that no update goes before it in place
    for (size_t k = 0; k < handles.size(); ++k) {
      values.push_back(variables[k]->Read());
      work->AddVariable({handles[k], *variables[k], values.back()});
    }
    Enqueue(DeviceOf(ctx), std::move(work));
  }

  static void Update(KernelContext& ctx, const std::vector<int>& handles,
                     const std::vector<VariableResource*>& variables, std::shared_ptr<Work> work) {
    VariableResource::UpdateTogether(variables, [&](std::span<const Tensor> olds, std::span<Tensor> outs) {
      for (size_t k = 0; k < handles.size(); ++k) {
        VariablePlace place(handles[k], *variables[k], olds[k]);
        place.out.emplace(outs[k]);
        work->AddVariable(std::move(place));
      }
      Enqueue(DeviceOf(ctx), work);
    });
  }

  const std::unique_ptr<OpKernel> kernel_;
  const bool updates_;
};

std::vector<Tensor> HostViews(const KernelContext& ctx) {
  std::vector<Tensor> views;
  for (int i = 0; i < ctx.num_inputs(); ++i) views.push_back(Place(ctx.input(i)).View());
  return views;
}

// Puts copies of what a CPU kernel has made of views into the outputs.
void SetOutputs(KernelContext& ctx, const HostRun& run) {
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
    DeviceOf(ctx).Synchronize();
    ErrorOf(ctx).status().ThrowIfError();
    HostRun run(ctx.node(), DeviceOf(ctx).host(), ctx.step(), HostViews(ctx));
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
    DeviceOf(ctx).Synchronize();
    ErrorOf(ctx).status().ThrowIfError();
    const auto run = std::make_shared<HostRun>(ctx.node(), DeviceOf(ctx).host(), ctx.step(), HostViews(ctx));
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
  if (IsObject(value.dtype())) return variable.Assign(value);
  CheckMemory(ctx);
  TestDevice& device = DeviceOf(ctx);
  StepError& error = ErrorOf(ctx);
  const auto enqueue_copy = [&](void* to, const void* instead) {
    device.compute_stream()->Enqueue([&error, to, from = TrueAddress(value), instead, bytes = value.bytes()] {
      CopyBytes(to, error.set() ? instead : from, bytes);
    });
  };
  if (variable.initialized() && variable.value_shape() == value.shape() && variable.dtype() == value.dtype()) {
    variable.Update([&](const Tensor& old, Tensor& out) {
      if (old.shape() != value.shape()) {
        throw AbortedError(StrCat("[test device] expected ", value.shape(), " as the shape of variable '",
                                  variable.name(), "'; another step has made it ", old.shape(), " meanwhile"));
      }
      enqueue_copy(TrueAddress(out), TrueAddress(old));
    });
    return;
  }
  // There is no old value of this shape to keep. First finds out whether the step has failed.
  device.Synchronize();
  if (error.set()) return;
  const Tensor copy(value.dtype(), value.shape(), device.allocator());
  enqueue_copy(TrueAddress(copy), TrueAddress(value));
  variable.Assign(copy);
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
