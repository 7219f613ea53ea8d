// The kernels of whole variables: handles, reading, assigning, adding and subtracting. Their launches are in state.cu.
// A variable is an ordinary VariableResource, whose bytes lie in the device's memory.
#include <memory>
#include <utility>

#include "cohort/backends/cuda/kernels/dtypes.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/state.cu.h"
#include "cohort/backends/cuda/kernels/variable_update.h"
#include "cohort/device/variable_kernels.h"

namespace cohort::cuda {
namespace {

VariableResource& VariableAt(KernelContext& ctx, int i) { return ResourceOf<VariableResource>(ctx.input(i)); }

void Read(KernelContext& ctx) {
  VariableResource& variable = VariableAt(ctx, 0);
  Tensor value = ReadValue(ctx, variable);
  CheckVariableDType(variable, ctx.node().output_dtype(0));
  ctx.SetOutput(0, std::move(value));
}

void IsInitialized(KernelContext& ctx) {
  const CudaCall call(ctx);
  const bool initialized = VariableAt(ctx, 0).initialized();
  Tensor& out = ctx.AllocateOutput(0, Shape());
  call.driver().FillAsync(out.raw_data(), initialized ? 1 : 0, sizeof(bool), call.stream());
}

// Enqueues that `out` gets the value, or keeps the old one if a check of the step has failed.
void CopyOrKeep(const CudaCall& call, const Tensor& old, const Tensor& value, Tensor& out, const ErrorWord* error) {
  if (value.bytes() == 0) return;
  LaunchAssign(call.driver(), call.stream(),
               {old.raw_data(), value.raw_data(), out.raw_data(), static_cast<int64_t>(value.bytes()), error});
}

// The first value, or a value of another shape: there is no old value that the stream could keep. So if a check of the
// step may still fail, waits for its outcome. Throws the step's error if it has failed.
void AssignNew(const CudaCall& call, VariableResource& variable, const Tensor& value) {
  if (call.recording() != nullptr) {
    throw AbortedError(StrCat("[cuda] expected a value of shape ", value.shape(), " in variable '", variable.name(),
                              "', which a recorded step overwrites; it has another shape, or no value"));
  }
  CudaDevice& device = call.device();
  if (device.error_words().WordOf(call.ctx()) != nullptr) device.Synchronize();
  if (call.ctx().step().error != nullptr) call.ctx().step().error->status().ThrowIfError();
  Tensor copy(value.dtype(), value.shape(), device.allocator());
  if (value.bytes() > 0) {
    call.driver().CopyAsync(copy.raw_data(), value.raw_data(), value.bytes(), Driver::Copy::kOnDevice, call.stream());
  }
  variable.Assign(copy);
}

// The value becomes the variable's in a buffer of its own, whose address stays the same as long as the shape does.
void Assign(KernelContext& ctx) {
  const CudaCall call(ctx);
  VariableResource& variable = VariableAt(ctx, 0);
  const Tensor& value = ctx.input(1);
  const bool objects = DTypeSize(value.dtype()) == 0;  // they lie in host memory
  if (!objects && variable.initialized() && variable.dtype() == value.dtype() &&
      variable.value_shape() == value.shape()) {
    UpdateVariables(
        call, {&variable}, [&](std::span<const Tensor> olds, std::span<Tensor> outs, const ErrorWord* error) {
          if (olds[0].shape() != value.shape()) {
            throw AbortedError(StrCat("[cuda] expected ", value.shape(), " as the shape of variable '", variable.name(),
                                      "'; another step has made it ", olds[0].shape(), " meanwhile"));
          }
          CopyOrKeep(call, olds[0], value, outs[0], error);
        });
    return;
  }
  objects ? variable.Assign(value) : AssignNew(call, variable, value);
  call.CountUpdate();
}

// variable = variable + value, or - value.
class UpdateKernel final : public OpKernel {
 public:
  UpdateKernel(const KernelConstruction& c, VariableUpdate update)
      : update_(update), dtype_(c.attr<DType>("dtype")), type_(NumberType(dtype_, c.node.op_name())) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    VariableResource& variable = VariableAt(ctx, 0);
    CheckVariableDType(variable, dtype_);
    const Tensor& value = ctx.input(1);
    UpdateVariables(
        call, {&variable}, [&](std::span<const Tensor> olds, std::span<Tensor> outs, const ErrorWord* error) {
          if (olds[0].shape() != value.shape()) {
            throw InvalidArgumentError(StrCat("[kernels/state] expected a change of shape ", olds[0].shape(),
                                              " for variable '", variable.name(), "'; got ", value.shape()));
          }
          if (value.num_elements() == 0) return;
          LaunchVariableUpdate(call.driver(), call.stream(), update_, type_,
                               {olds[0].raw_data(), value.raw_data(), outs[0].raw_data(), value.num_elements(), error});
        });
  }

 private:
  const VariableUpdate update_;
  const DType dtype_;
  const ElementType type_;
};

void RegisterUpdate(KernelRegistry& registry, const char* name, VariableUpdate update) {
  registry.Register(name, kGpu, [update](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    return std::make_unique<UpdateKernel>(c, update);
  });
}

}  // namespace

void RegisterStateKernels(KernelRegistry& registry) {
  registry.Register<VarHandleKernel<VariableResource>>("VarHandleOp", kGpu);
  registry.RegisterFn("ReadVariableOp", kGpu, Read);
  registry.RegisterFn("AssignVariableOp", kGpu, Assign);
  registry.RegisterFn("VarIsInitializedOp", kGpu, IsInitialized);
  registry.RegisterFn("VariableShape", kGpu, ShapeOfVariable<VariableResource>);
  RegisterUpdate(registry, "AssignAddVariableOp", VariableUpdate::kAdd);
  RegisterUpdate(registry, "AssignSubVariableOp", VariableUpdate::kSub);
}

}  // namespace cohort::cuda
