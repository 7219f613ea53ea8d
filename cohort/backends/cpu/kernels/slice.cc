// How the CPU moves the elements of Slice, StridedSlice, its gradient and Pad (cohort/backends/slice_kernels.h).
#include <algorithm>

#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/strided_copy.h"
#include "cohort/backends/slice_kernels.h"

namespace cohort {
namespace {

struct CpuMoves {
  static void Take(KernelContext& ctx, const Tensor& x, const ops::StridedSliceSpec& spec) {
    Tensor& out = ctx.AllocateOutput(0, spec.output);
    const SliceCopy copy = CopyOfSlice(x.shape(), spec);
    if (copy.layout.elements() == 0) return;
    cpu::ForElements(x.dtype(), ctx.node().op_name(), [&]<typename T>(T) {
      cpu::CopyStrided(copy.layout, static_cast<const T*>(x.raw_data()) + copy.first, static_cast<T*>(out.raw_data()),
                       ctx.num_threads());
      return 0;
    });
  }

  static void Put(KernelContext& ctx, const Tensor& x, const Shape& shape, const ops::StridedSliceSpec& spec,
                  const Tensor* fill) {
    Tensor& out = ctx.AllocateOutput(0, shape);
    const auto from = DenseStrides(Shape(spec.count)), to = DenseStrides(shape);
    StridedLayout layout;
    int64_t first = 0;
    for (size_t i = 0; i < spec.begin.size(); ++i) {
      first += spec.begin[i] * to[i];
      layout.Add(spec.count[i], from[i], spec.stride[i] * to[i]);
    }
    cpu::ForElements(x.dtype(), ctx.node().op_name(), [&]<typename T>(T) {
      T* target = static_cast<T*>(out.raw_data());
      const T value = fill == nullptr ? T() : *static_cast<const T*>(fill->raw_data());
      if (layout.elements() < out.num_elements()) std::fill(target, target + out.num_elements(), value);
      if (layout.elements() > 0) {
        cpu::CopyStrided(layout, static_cast<const T*>(x.raw_data()), target + first, ctx.num_threads());
      }
      return 0;
    });
  }
};

}  // namespace

void RegisterSliceKernels(KernelRegistry& registry) {
  registry.RegisterFn("Slice", "CPU", SliceKernel<CpuMoves>);
  registry.Register<StridedSliceKernel<CpuMoves>>("StridedSlice", "CPU");
  registry.Register<StridedSliceGradKernel<CpuMoves>>("StridedSliceGrad", "CPU");
  registry.RegisterFn("Pad", "CPU", PadKernel<CpuMoves>);
  registry.RegisterFn("PadV2", "CPU", PadKernel<CpuMoves>);
}

}  // namespace cohort
