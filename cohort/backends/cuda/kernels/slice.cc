// How GPUs move the elements of Slice, StridedSlice, its gradient and Pad (cohort/backends/slice_kernels.h).
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/register_moving.h"
#include "cohort/backends/cuda/kernels/strided_copy.cu.h"
#include "cohort/backends/cuda/kernels/strided_copy.h"
#include "cohort/backends/slice_kernels.h"

namespace cohort::cuda {
namespace {

struct GpuMoves {
  static void Take(KernelContext& ctx, const Tensor& x, const ops::StridedSliceSpec& spec) {
    const CudaCall call(ctx);
    Tensor& out = ctx.AllocateOutput(0, spec.output);
    const SliceCopy copy = CopyOfSlice(x.shape(), spec);
    CopyStrided(call, copy.layout, x, copy.first, out);
  }

  // One kernel looks at each element of the output.
  static void Put(KernelContext& ctx, const Tensor& x, const Shape& shape, const ops::StridedSliceSpec& spec,
                  const Tensor* fill) {
    const CudaCall call(ctx);
    Tensor& out = ctx.AllocateOutput(0, shape);
    if (out.num_elements() == 0) return;
    const auto from = DenseStrides(Shape(spec.count));
    PutSliceArgs args;
    args.from = x.raw_data();
    args.fill = fill == nullptr ? nullptr : fill->raw_data();
    args.to = out.raw_data();
    args.element_bytes = DTypeSize(x.dtype());
    args.elements = out.num_elements();
    args.rank = shape.rank();
    for (int i = 0; i < shape.rank(); ++i) {
      const auto at = static_cast<size_t>(i);
      args.dims[i] = {Divider(shape.dim(i)), spec.begin[at], spec.stride[at], spec.count[at], from[at]};
    }
    LaunchPutSlice(call.driver(), call.stream(), args);
  }
};

}  // namespace

void RegisterSliceKernels(KernelRegistry& registry) {
  RegisterMovingFn(registry, "Slice", SliceKernel<GpuMoves>);
  RegisterMoving<StridedSliceKernel<GpuMoves>>(registry, "StridedSlice");
  RegisterMoving<StridedSliceGradKernel<GpuMoves>>(registry, "StridedSliceGrad");
  RegisterMovingFn(registry, "Pad", PadKernel<GpuMoves>);
  RegisterMovingFn(registry, "PadV2", PadKernel<GpuMoves>);
}

}  // namespace cohort::cuda
