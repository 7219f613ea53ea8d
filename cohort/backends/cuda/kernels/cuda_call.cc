#include "cohort/backends/cuda/kernels/cuda_call.h"

#include <algorithm>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"

namespace cohort::cuda {
namespace {

bool IsObject(DType dtype) { return DTypeSize(dtype) == 0; }

}  // namespace

bool InputOnHost(const Node& node, int i) { return node.input_arg(i).host_memory || IsObject(node.input(i).dtype()); }
bool OutputOnHost(const Node& node, int i) { return node.output_arg(i).host_memory || IsObject(node.output_dtype(i)); }

CudaCall::CudaCall(KernelContext& ctx)
    : ctx_(ctx), device_(CudaDeviceOf(ctx)), recording_(CudaRecording::Current()), owner_(ctx.node()) {
  const MemorySpace here = device_.memory().space();
  // The kernel of a chain has the inputs of several nodes, all of them in the device's memory.
  const int inputs = std::min(ctx.num_inputs(), ctx.node().num_inputs());
  for (int i = 0; i < inputs; ++i) {
    const bool wants_host = InputOnHost(ctx.node(), i);
    if (ctx.input(i).space() == (wants_host ? MemorySpace::Host() : here)) continue;
    throw InternalError(StrCat("[cuda] expected input ", i, " of ", ctx.node().Describe(), " in ",
                               wants_host ? "host" : "device", " memory; got it in ", ctx.input(i).space().ToString()));
  }
  if (!device_.error_words().MayRun(ctx)) ctx.step().error->status().ThrowIfError();
}

Tensor* CudaCall::AllocateOutputs() {
  if (ctx_.num_outputs() == 0) return nullptr;
  const std::vector<Shape> shapes = OutputShapes(ctx_);
  Tensor* first = nullptr;
  for (int i = 0; i < ctx_.num_outputs(); ++i) {
    const Shape& shape = shapes[static_cast<size_t>(i)];
    if (!shape.IsFullyDefined()) {
      throw InternalError(StrCat("[cuda] expected a shape rule that knows output ", i, " of ", ctx_.node().Describe(),
                                 " before it runs, or the trait data_dependent_shape; got ", shape));
    }
    Tensor& output = ctx_.AllocateOutput(i, shape);
    if (i == 0) first = &output;
  }
  return first;
}

}  // namespace cohort::cuda
