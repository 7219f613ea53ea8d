// The kernel of TopKV2. Its launch is in top_k.cu.
#include <vector>

#include "cohort/backends/cuda/kernels/dtypes.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/top_k.cu.h"
#include "cohort/ops/shape_rules.h"

namespace cohort::cuda {
namespace {

class TopKKernel final : public OpKernel {
 public:
  explicit TopKKernel(const KernelConstruction& c) : type_(NumberType(c.node.input(0).dtype(), c.node.op_name())) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const std::vector<Shape> shapes = OutputShapes(ctx);
    const Tensor& input = ctx.input(0);
    Tensor& values = ctx.AllocateOutput(0, shapes[0]);
    Tensor& indices = ctx.AllocateOutput(1, shapes[1]);
    if (values.num_elements() == 0) return;
    TopKArgs args;
    args.in = input.raw_data();
    args.values = values.raw_data();
    args.indices = indices.raw_data();
    args.wide_indices = indices.dtype() == DType::kInt64;
    args.columns = input.shape().dim(input.shape().rank() - 1);
    args.rows = input.num_elements() / args.columns;
    args.k = values.shape().dim(values.shape().rank() - 1);
    if (args.columns > TopKArgs::kMostColumns) {
      throw InvalidArgumentError(
          StrCat("[backends/cuda] expected at most 2^31 elements in a row for TopKV2; got ", input.shape()));
    }
    const Scratch scratch(call, static_cast<size_t>(TopKScratchBytes(args.rows, args.columns)));
    args.scratch = scratch.data();
    LaunchTopK(call.driver(), call.stream(), type_, args);
  }

 private:
  const ElementType type_;
};

}  // namespace

void RegisterTopKKernels(KernelRegistry& registry) { registry.Register<TopKKernel>("TopKV2", kGpu); }

}  // namespace cohort::cuda
