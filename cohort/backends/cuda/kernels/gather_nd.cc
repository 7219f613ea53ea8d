// Kernels that take and put slices by coordinates: GatherNd, ScatterNd and the scatters into a copy of a tensor. The
// coordinates become numbers of rows, and the rest is done by the kernels for rows.
#include <algorithm>
#include <string>

#include "cohort/backends/cuda/kernels/gather_nd.cu.h"
#include "cohort/backends/cuda/kernels/index_check.h"
#include "cohort/backends/cuda/kernels/moves.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/register_moving.h"
#include "cohort/backends/cuda/kernels/row_update.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/backends/cuda/kernels/training.cu.h"
#include "cohort/ops/nd_index.h"

namespace cohort::cuda {
namespace {

// Enqueues that rows[i] becomes the row of coordinates i, or `bad_row`. Requires: there are coordinates.
void EnqueueRowNumbers(const CudaCall& call, const Tensor& indices, const Shape& whole, const ops::NdIndex& nd,
                       int64_t bad_row, Tensor& rows) {
  const IndexReport report(call, [x = indices.shape(), whole](int64_t position, int64_t value) {
    return ops::DescribeNdIndex(position, value, x, whole);
  });
  RowNumberArgs args;
  args.indices = indices.raw_data();
  args.rows = rows.data<int64_t>();
  args.count = nd.count;
  args.depth = nd.depth;
  for (int d = 0; d < nd.depth; ++d) args.dims[d] = whole.dim(d);
  args.bad_row = bad_row;
  args.check = report.check();
  LaunchRowNumbers(call.driver(), call.stream(), ElementTypeOf(indices.dtype()), args);
}

void GatherNd(KernelContext& ctx) {
  CudaCall call(ctx);
  Tensor& out = *call.AllocateOutputs();
  const Tensor& params = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  const ops::NdIndex nd = ops::NdIndexOf(indices.shape(), params.shape());
  if (nd.count == 0) return;
  Tensor rows = ctx.AllocateTemp(DType::kInt64, Shape{nd.count});
  EnqueueRowNumbers(call, indices, params.shape(), nd, 0, rows);
  if (out.num_elements() == 0 || nd.rows == 0) return;
  const int64_t bytes = nd.columns * static_cast<int64_t>(DTypeSize(params.dtype()));
  GatherArgs args;
  args.params = params.raw_data();
  args.indices = rows.raw_data();
  args.out = out.raw_data();
  args.piece_bytes = LargestMove({AddressOf(args.params), AddressOf(args.out), bytes});
  args.dim = nd.rows;
  args.inner = bytes / static_cast<int64_t>(args.piece_bytes);
  args.n = nd.count;
  LaunchGather(call.driver(), call.stream(), ElementType::kInt64, args);
}

// Enqueues the changes of rows of `out`, in the order of the updates. A row that does not exist is reported, and
// changes nothing.
void EnqueueScatter(const CudaCall& call, ScatterOp op, const Tensor& indices, const Tensor& updates, Tensor& out) {
  const ops::NdIndex nd = ops::NdIndexOf(indices.shape(), out.shape());
  if (nd.count == 0) return;
  Tensor rows = call.ctx().AllocateTemp(DType::kInt64, Shape{nd.count});
  EnqueueRowNumbers(call, indices, out.shape(), nd, -1, rows);
  if (out.num_elements() == 0) return;
  Scratch keys(call, RowOrderBytes(rows));
  ScatterUpdate update;
  update.variable = out.raw_data();
  update.updates = updates.raw_data();
  update.rows.order = EnqueueRowOrder(call, rows, nd.rows, keys);
  update.rows.n = nd.count;
  update.rows.columns = nd.columns;
  const DType dtype = out.dtype() == DType::kBool ? DType::kUint8 : out.dtype();  // moved, and not computed
  LaunchScatters(call.driver(), call.stream(), op, ElementTypeOf(dtype), nullptr, &update, 1);
}

void ScatterNd(KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  ops::CheckNdUpdates(indices.shape(), ctx.input(1).shape(), ops::ShapeOfScatterNd(ctx.input(2)));
  CudaCall call(ctx);
  Tensor& out = *call.AllocateOutputs();
  FillZero(call, out);
  EnqueueScatter(call, ScatterOp::kAdd, indices, ctx.input(1), out);
}

template <ScatterOp kOp>
void TensorScatter(KernelContext& ctx) {
  CudaCall call(ctx);
  Tensor& out = *call.AllocateOutputs();
  const Tensor& tensor = ctx.input(0);
  ops::CheckNdUpdates(ctx.input(1).shape(), ctx.input(2).shape(), tensor.shape());
  if (out.bytes() > 0) {
    call.driver().CopyAsync(out.raw_data(), tensor.raw_data(), out.bytes(), Driver::Copy::kOnDevice, call.stream());
  }
  EnqueueScatter(call, kOp, ctx.input(1), ctx.input(2), out);
}

}  // namespace

void RegisterGatherNdKernels(KernelRegistry& registry) {
  RegisterMovingFn(registry, "GatherNd", GatherNd);
  registry.RegisterFn("ScatterNd", kGpu, ScatterNd);
  RegisterMovingFn(registry, "TensorScatterUpdate", TensorScatter<ScatterOp::kPut>);
  registry.RegisterFn("TensorScatterAdd", kGpu, TensorScatter<ScatterOp::kAdd>);
  registry.RegisterFn("TensorScatterSub", kGpu, TensorScatter<ScatterOp::kSub>);
}

}  // namespace cohort::cuda
