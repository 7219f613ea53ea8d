// Kernels that sum rows by index: UnsortedSegmentSum and sums of repeated rows. And the check of the indices of an
// update of rows.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cohort/backends/cuda/kernels/index_check.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/row_update.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/backends/cuda/kernels/segment_sum.cu.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/variable_kernels.h"

namespace cohort::cuda {
namespace {

void SegmentSum(KernelContext& ctx) {
  CudaCall call(ctx);
  const Tensor& data = ctx.input(0);
  const Tensor& ids = ctx.input(1);
  Tensor& out = *call.AllocateOutputs();
  FillZero(call, out);
  const int64_t n = ids.num_elements();
  if (n == 0) return;
  const int64_t segments = out.shape().dim(0);
  const IndexReport report(call, [segments, shape = ids.shape()](int64_t position, int64_t id) {
    return StrCat("segment_ids[", position, "] = ", id, " is out of range [0, ", segments, "); segment_ids have shape ",
                  shape);
  });
  LaunchIndexCheck(call.driver(), call.stream(), ElementTypeOf(ids.dtype()), ids.raw_data(), n, segments,
                   IndexRange::kRowsOrNegative, report.check());
  if (out.num_elements() == 0) return;
  const ElementType type = ElementTypeOf(data.dtype());
  Scratch keys(call, RowOrderBytes(ids));
  SegmentSumArgs args;
  args.order = EnqueueRowOrder(call, ids, segments, keys);
  args.n = n;
  args.data = data.raw_data();
  args.out = out.raw_data();
  args.columns = out.num_elements() / segments;
  const Scratch partial(call, static_cast<size_t>(SegmentSumPartialBytes(type, n, args.columns)));
  args.partial = partial.data();
  LaunchSegmentSum(call.driver(), call.stream(), type, args);
}

// The pass SumRowsOnCard puts it into the place of Unique and UnsortedSegmentSum. All shapes are known without the
// data.
void SumRepeatedRows(KernelContext& ctx) {
  const CudaCall call(ctx);
  const Tensor& indices = ctx.input(0);
  const Tensor& values = ctx.input(1);
  const int64_t n = indices.num_elements();
  if (indices.shape().rank() != 1 || values.shape().rank() < 1 || values.shape().dim(0) != n) {
    throw InvalidArgumentError(StrCat("[kernels/partition] expected one index for each row of a gradient; got ",
                                      indices.shape(), " for ", values.shape()));
  }
  Tensor& rows = ctx.AllocateOutput(0, indices.shape());
  Tensor& sums = ctx.AllocateOutput(1, values.shape());
  if (n == 0) return;
  // All indices that an order can hold count; an index above them is no row of any variable.
  const int bits = RowOrderFor(n).bits;
  int64_t limit = (int64_t{1} << (62 - bits)) - 1;
  if (indices.dtype() == DType::kInt32) limit = std::min(limit, int64_t{1} << 31);
  Scratch keys(call, RowOrderBytes(indices));
  SegmentSumArgs args;
  args.order = EnqueueRowOrder(call, indices, limit, keys);
  LaunchFirstPositions(call.driver(), call.stream(), ElementTypeOf(indices.dtype()), indices.raw_data(), n, limit,
                       args.order, rows.raw_data());
  FillZero(call, sums);
  if (sums.num_elements() == 0) return;
  const ElementType type = ElementTypeOf(values.dtype());
  args.n = n;
  args.data = values.raw_data();
  args.out = sums.raw_data();
  args.columns = values.num_elements() / n;
  args.at_first = true;
  const Scratch partial(call, static_cast<size_t>(SegmentSumPartialBytes(type, n, args.columns)));
  args.partial = partial.data();
  LaunchSegmentSum(call.driver(), call.stream(), type, args);
}

// Checks the indices of the node `update` before any update of the step (passes/check_values.h). If the variable has
// no value, or no rows, the update itself says so. No value is held: a recorded step knows the variable by the update.
class CheckIndicesKernel final : public OpKernel {
 public:
  explicit CheckIndicesKernel(const KernelConstruction& c)
      : op_(c.attr<std::string>("op")), update_(c.attr<std::string>("update")), range_(RangeOfRows(c.node)) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const auto& variable = ResourceOf<VariableResource>(ctx.input(0));
    const Tensor& indices = ctx.input(1);
    if (indices.num_elements() == 0 || !variable.initialized()) return;
    const Shape shape = variable.value_shape();
    if (shape.rank() < 1) return;
    const IndexReport report(call, DescribeRow(variable, shape.dim(0)), ctx.DescribeAs(op_, update_));
    LaunchIndexCheck(call.driver(), call.stream(), ElementTypeOf(indices.dtype()), indices.raw_data(),
                     indices.num_elements(), shape.dim(0), range_, report.check());
  }

 private:
  const std::string op_;
  const std::string update_;
  const IndexRange range_;
};

}  // namespace

void RegisterPartitionKernels(KernelRegistry& registry) {
  registry.RegisterFn("UnsortedSegmentSum", kGpu, SegmentSum);
  registry.RegisterFn("_SumRepeatedRows", kGpu, SumRepeatedRows);
  registry.Register<CheckIndicesKernel>("_CheckIndices", kGpu);
}

}  // namespace cohort::cuda
