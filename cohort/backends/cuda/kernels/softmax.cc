// The kernels of Softmax, LogSoftmax and the cross-entropies with logits. Their launches are in softmax.cu.
#include <memory>

#include "cohort/backends/cuda/kernels/dtypes.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/softmax.cu.h"

namespace cohort::cuda {
namespace {

class SoftmaxKernel final : public OpKernel {
 public:
  explicit SoftmaxKernel(const KernelConstruction& c)
      : log_(c.node.op_name() == "LogSoftmax"), type_(FloatingType(c.attr<DType>("T"), c.node.op_name())) {}
  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Shape shape = ctx.input(0).shape();
    if (shape.rank() < 1) {
      throw InvalidArgumentError("[kernels/softmax] expected logits of rank 1 or more; got a scalar");
    }
    LogitsArgs args{ctx.input(0).raw_data(), 0, shape.dim(shape.rank() - 1)};
    Tensor& out = ctx.ForwardInputOrAllocate(0, 0, shape);
    if (out.num_elements() == 0) return;
    args.rows = out.num_elements() / args.classes;
    LaunchSoftmax(call.driver(), call.stream(), type_, log_, args, out.raw_data());
  }

 private:
  const bool log_;
  const ElementType type_;
};

// Both cross-entropies.
class LossKernel final : public OpKernel {
 public:
  explicit LossKernel(const KernelConstruction& c)
      : sparse_(c.node.op_name() == "SparseSoftmaxCrossEntropyWithLogits"),
        type_(FloatingType(c.attr<DType>("T"), c.node.op_name())) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Tensor labels = ctx.input(1);
    const Shape shape = ctx.input(0).shape();
    CheckShapes(shape, labels.shape());
    LossArgs args{{ctx.input(0).raw_data(), shape.dim(0), shape.dim(1)}, labels.raw_data(), nullptr, nullptr};
    Tensor& loss = ctx.AllocateOutput(0, Shape{args.input.rows});
    Tensor& gradient = ctx.ForwardInputOrAllocate(0, 1, shape);
    args.loss = loss.raw_data();
    args.gradient = gradient.raw_data();
    if (args.input.rows == 0) return;
    if (args.input.classes == 0) return WithoutClasses(call, loss);
    if (!sparse_) return LaunchDenseLoss(call.driver(), call.stream(), type_, args);
    ErrorWords& words = call.device().error_words();
    const ErrorWords::Check check = words.Announce(ctx, OutOfRange(args.input.classes));
    LaunchSparseLoss(call.driver(), call.stream(), type_, labels.dtype() == DType::kInt64, args, check.word,
                     check.number);
    words.Follow(ctx);
  }

 private:
  void CheckShapes(const Shape& logits, const Shape& labels) const {
    const bool fits = logits.rank() == 2 && (sparse_ ? labels == logits.Sub(0, 1) : labels == logits);
    if (fits) return;
    throw InvalidArgumentError(StrCat("[kernels/softmax] expected logits [batch, classes] and labels ",
                                      sparse_ ? "[batch]" : "[batch, classes]", "; got ", logits, " and ", labels));
  }

  static ErrorWords::Describe OutOfRange(int64_t classes) {
    return [classes](int64_t position, int64_t label) {
      return Status(Code::kInvalidArgument,
                    StrCat("[kernels/softmax] Received a label value of ", label,
                           " which is outside the valid range of [0, ", classes, "); labels[", position, "]"));
    };
  }

  // A sum of no terms is 0, but no label is a class.
  void WithoutClasses(const CudaCall& call, Tensor& loss) const {
    FillZero(call, loss);
    if (!sparse_) return;
    throw InvalidArgumentError("[kernels/softmax] expected at least one class for sparse labels; got logits with none");
  }

  const bool sparse_;
  const ElementType type_;
};

}  // namespace

void RegisterSoftmaxKernels(KernelRegistry& registry) {
  registry.Register<SoftmaxKernel>("Softmax", kGpu);
  registry.Register<SoftmaxKernel>("LogSoftmax", kGpu);
  registry.Register<LossKernel>("SoftmaxCrossEntropyWithLogits", kGpu);
  registry.Register<LossKernel>("SparseSoftmaxCrossEntropyWithLogits", kGpu);
}

}  // namespace cohort::cuda
