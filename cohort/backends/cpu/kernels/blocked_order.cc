#include "cohort/backends/cpu/kernels/onednn.h"
#include "cohort/backends/cpu/kernels/simd.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

using cpu::Order;

class ReorderKernel final : public OpKernel {
 public:
  ReorderKernel(Order from, Order to) : from_(from), to_(to) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    const Shape& shape = input.shape();
    if (shape.rank() != 4 || shape.dim(3) % cpu::kChannelBlock != 0) {
      throw InvalidArgumentError(StrCat("[kernels/blocked_order] expected images with a multiple of ",
                                        cpu::kChannelBlock, " channels; got ", shape));
    }
    Tensor& output = ctx.AllocateOutput(0, shape);
    if (shape.num_elements() == 0) return;
    cpu::UseThreads(ctx.num_threads());
    try {
      dnnl::memory from(cpu::ImageDesc(shape, input.dtype(), from_), cpu::CpuEngine(),
                        const_cast<void*>(input.raw_data()));
      dnnl::memory to(cpu::ImageDesc(shape, input.dtype(), to_), cpu::CpuEngine(), output.raw_data());
      dnnl::stream stream(cpu::CpuEngine());
      // oneDNN itself keeps the primitives that it has made, also those that change orders.
      dnnl::reorder(from, to).execute(stream, from, to);
      stream.wait();
    } catch (const dnnl::error& error) {
      throw InternalError(StrCat("[kernels/blocked_order] oneDNN cannot reorder ", shape, ": ", error.what()));
    }
  }

 private:
  const Order from_;
  const Order to_;
};

}  // namespace

void cpu::RegisterBlockedOrderKernels(KernelRegistry& registry) {
  // With shorter vectors, oneDNN's pools have only a reference implementation for this order.
  if (!cpu::HasAvx512()) return;
  registry.Register("_ToBlocked", "CPU", [](const KernelConstruction&) -> std::unique_ptr<OpKernel> {
    return std::make_unique<ReorderKernel>(Order::kChannelsLast, Order::kBlocked);
  });
  registry.Register("_FromBlocked", "CPU", [](const KernelConstruction&) -> std::unique_ptr<OpKernel> {
    return std::make_unique<ReorderKernel>(Order::kBlocked, Order::kChannelsLast);
  });
}

}  // namespace cohort
