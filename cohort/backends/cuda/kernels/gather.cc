// Kernels that look up by index: GatherV2, ResourceGather and OneHot. An index that is out of range is reported through
// the step's error word.
#include <algorithm>
#include <string>

#include "cohort/backends/cuda/kernels/gather.cu.h"
#include "cohort/backends/cuda/kernels/index_check.h"
#include "cohort/backends/cuda/kernels/moves.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/register_moving.h"
#include "cohort/backends/cuda/kernels/variable_update.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/variable_kernels.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::cuda {
namespace {

// params seen as [batch, outer, dim, inner], indices as [batch, n].
struct GatherSizes {
  int64_t batch, outer, dim, inner, n;
};

void EnqueueGather(const CudaCall& call, const GatherSizes& s, const Tensor& params, const Tensor& indices, Tensor& out,
                   const IndexCheck& check) {
  const ElementType index = ElementTypeOf(indices.dtype());
  if (out.num_elements() == 0) {
    if (s.batch * s.n == 0) return;
    LaunchIndexCheck(call.driver(), call.stream(), index, indices.raw_data(), s.batch * s.n, s.dim, IndexRange::kRows,
                     check);
    return;
  }
  const int64_t bytes = s.inner * static_cast<int64_t>(DTypeSize(params.dtype()));
  GatherArgs args;
  args.params = params.raw_data();
  args.indices = indices.raw_data();
  args.out = out.raw_data();
  args.piece_bytes = LargestMove({AddressOf(args.params), AddressOf(args.out), bytes});
  args.batch = s.batch;
  args.outer = s.outer;
  args.dim = s.dim;
  args.inner = bytes / static_cast<int64_t>(args.piece_bytes);
  args.n = s.n;
  args.check = check;
  LaunchGather(call.driver(), call.stream(), index, args);
}

class GatherKernel final : public OpKernel {
 public:
  explicit GatherKernel(const KernelConstruction& c) : batch_dims_(static_cast<int>(c.attr<int64_t>("batch_dims"))) {}

  void Compute(KernelContext& ctx) override {
    CudaCall call(ctx);
    Tensor& out = *call.AllocateOutputs();
    const Tensor& params = ctx.input(0);
    const Tensor& indices = ctx.input(1);
    const Shape& p = params.shape();
    const Shape& x = indices.shape();
    const int axis = ops::NormalizeAxis(ops::IntegerScalar(ctx.input(2), "axis"), p.rank());
    const int batch = batch_dims_ < 0 ? batch_dims_ + x.rank() : batch_dims_;
    const GatherSizes s{p.Sub(0, batch).num_elements(), p.Sub(batch, axis).num_elements(), p.dim(axis),
                        p.Sub(axis + 1, p.rank()).num_elements(), x.Sub(batch, x.rank()).num_elements()};
    const IndexReport report(call, [shapes = StrCat("; indices have shape ", x, ", params ", p), dim = s.dim](
                                       int64_t position, int64_t index) {
      return StrCat("indices[", position, "] = ", index, " is not in [0, ", dim, ")", shapes);
    });
    EnqueueGather(call, s, params, indices, out, report.check());
  }

 private:
  const int batch_dims_;
};

// Rows of a variable.
void GatherFromVariable(KernelContext& ctx) {
  const CudaCall call(ctx);
  auto& variable = ResourceOf<VariableResource>(ctx.input(0));
  const Tensor& indices = ctx.input(1);
  const Tensor value =
      ReadValue(ctx, variable);  // held until the work is enqueued, so that no update goes before it in place
  CheckVariableDType(variable, ctx.node().output_dtype(0));
  if (value.shape().rank() < 1) {
    throw InvalidArgumentError(StrCat("[variable] expected a variable with rows of numbers; got '", variable.name(),
                                      "' of ", value.dtype(), value.shape()));
  }
  const Shape row = value.shape().Sub(1, value.shape().rank());
  Tensor& out = ctx.AllocateOutput(0, indices.shape().Concat(row));
  const GatherSizes s{1, 1, value.shape().dim(0), row.num_elements(), indices.num_elements()};
  const IndexReport report(call, DescribeRow(variable, s.dim));
  EnqueueGather(call, s, value, indices, out, report.check());
}

class OneHotKernel final : public OpKernel {
 public:
  explicit OneHotKernel(const KernelConstruction& c) : axis_(c.attr<int64_t>("axis")) {}

  void Compute(KernelContext& ctx) override {
    CudaCall call(ctx);
    Tensor& out = *call.AllocateOutputs();
    const Shape& in = ctx.input(0).shape();
    if (ctx.input(2).num_elements() != 1 || ctx.input(3).num_elements() != 1) {
      throw InvalidArgumentError(StrCat("on_value and off_value must be scalars; got shapes ", ctx.input(2).shape(),
                                        " and ", ctx.input(3).shape()));
    }
    if (out.num_elements() == 0) return;
    const int axis = ops::NormalizeAxis(axis_, in.rank() + 1);
    OneHotArgs args;
    args.indices = ctx.input(0).raw_data();
    args.on = ctx.input(2).raw_data();
    args.off = ctx.input(3).raw_data();
    args.out = out.raw_data();
    args.element_bytes = DTypeSize(out.dtype());
    args.depth = out.shape().dim(axis);
    args.inner = in.Sub(axis, in.rank()).num_elements();
    args.elements = out.num_elements();
    LaunchOneHot(call.driver(), call.stream(), ElementTypeOf(ctx.input(0).dtype()), args);
  }

 private:
  const int64_t axis_;
};

}  // namespace

void RegisterGatherKernels(KernelRegistry& registry) {
  RegisterMoving<GatherKernel>(registry, "GatherV2");
  registry.RegisterFn("ResourceGather", kGpu, GatherFromVariable);
  RegisterMoving<OneHotKernel>(registry, "OneHot");
}

}  // namespace cohort::cuda
