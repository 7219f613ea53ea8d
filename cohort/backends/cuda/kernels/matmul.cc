// Matrix products: MatMul, BatchMatMulV2, and MatMul with a bias and an activation. Products of floating-point numbers
// are those of Blas. Products of integers have a kernel of ours (integer_matmul.cu).
#include <algorithm>
#include <array>
#include <string>

#include "cohort/backends/cpu/kernels/broadcast.h"
#include "cohort/backends/cuda/kernels/activation.h"
#include "cohort/backends/cuda/kernels/integer_matmul.cu.h"
#include "cohort/backends/cuda/kernels/library_calls.h"
#include "cohort/backends/cuda/kernels/product.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/backends/cuda/kernels/scratch.h"
#include "cohort/device/logical_devices.h"

namespace cohort::cuda {
namespace {

// Sizes of the product of the matrices in the last two dimensions.
GemmSpec ProductSpec(DType dtype, const Shape& a, const Shape& b, bool transpose_a, bool transpose_b) {
  const int ra = a.rank(), rb = b.rank();
  GemmSpec s;
  s.dtype = dtype;
  s.m = a.dim(transpose_a ? ra - 1 : ra - 2);
  s.n = b.dim(transpose_b ? rb - 2 : rb - 1);
  s.k = a.dim(transpose_a ? ra - 2 : ra - 1);
  s.transpose_a = transpose_a;
  s.transpose_b = transpose_b;
  const int64_t kb = b.dim(transpose_b ? rb - 1 : rb - 2);
  if (s.k != kb) {
    throw InvalidArgumentError(StrCat("Matrix size-incompatible: In[0]: ", a, transpose_a ? " transposed" : "",
                                      ", In[1]: ", b, transpose_b ? " transposed" : "", ": inner dimensions ", s.k,
                                      " and ", kb, " differ"));
  }
  return s;
}

GemmSpec MatrixSpec(const KernelContext& ctx, bool transpose_a, bool transpose_b) {
  const Tensor& a = ctx.input(0);
  const Shape& b = ctx.input(1).shape();
  if (a.shape().rank() != 2 || b.rank() != 2) {
    throw InvalidArgumentError(StrCat("MatMul takes two matrices; got shapes ", a.shape(), " and ", b));
  }
  return ProductSpec(a.dtype(), a.shape(), b, transpose_a, transpose_b);
}

void MultiplyIntegers(const CudaCall& call, const GemmSpec& s, const GemmOperands& operands) {
  if (s.m == 0 || s.n == 0 || s.batches == 0) return;
  LaunchIntegerMatMul(call.driver(), call.stream(), ElementTypeOf(s.dtype),
                      {s.m, s.n, s.k, s.transpose_a, s.transpose_b, s.batches, s.step_a, s.step_b}, operands.a,
                      operands.b, operands.c);
}

void MultiplyAny(const CudaCall& call, const GemmSpec& spec, const GemmOperands& operands) {
  IsFloating(spec.dtype) ? Multiply(call, spec, operands) : MultiplyIntegers(call, spec, operands);
}

void Prepare(GemmSpec& spec, const GemmOperands& operands) {
  spec.tensor_float_32 = spec.dtype == DType::kFloat32 && config::TensorFloat32ExecutionEnabled();
  spec.alignment = AlignmentOf(operands);
}

class MatMulKernel final : public OpKernel {
 public:
  explicit MatMulKernel(const KernelConstruction& c)
      : transpose_a_(c.attr<bool>("transpose_a")), transpose_b_(c.attr<bool>("transpose_b")) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const GemmSpec spec = MatrixSpec(ctx, transpose_a_, transpose_b_);
    Tensor& out = ctx.AllocateOutput(0, Shape{spec.m, spec.n});
    MultiplyAny(call, spec, {ctx.input(0).raw_data(), ctx.input(1).raw_data(), nullptr, out.raw_data()});
  }

 private:
  const bool transpose_a_;
  const bool transpose_b_;
};

class FusedMatMulKernel final : public OpKernel {
 public:
  explicit FusedMatMulKernel(const KernelConstruction& c)
      : transpose_a_(c.attr<bool>("transpose_a")),
        transpose_b_(c.attr<bool>("transpose_b")),
        activation_(FindActivation(c.attr<std::string>("activation"))) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const GemmSpec spec = MatrixSpec(ctx, transpose_a_, transpose_b_);
    const Tensor& bias = ctx.input(2);
    if (bias.shape() != Shape{spec.n}) {
      throw InvalidArgumentError(StrCat("[backends/cuda] expected a bias of shape [", spec.n,
                                        "] for a product of shape [", spec.m, ",", spec.n, "]; got ", bias.shape()));
    }
    Tensor& out = ctx.AllocateOutput(0, Shape{spec.m, spec.n});
    MultiplyAndEnd(call, spec, {ctx.input(0).raw_data(), ctx.input(1).raw_data(), nullptr, nullptr}, activation_, bias,
                   out);
  }

 private:
  const bool transpose_a_;
  const bool transpose_b_;
  const Activation activation_;
};

class BatchMatMulKernel final : public OpKernel {
 public:
  explicit BatchMatMulKernel(const KernelConstruction& c)
      : adj_x_(c.attr<bool>("adj_x")), adj_y_(c.attr<bool>("adj_y")) {}

  void Compute(KernelContext& ctx) override {
    const CudaCall call(ctx);
    const Shape& x = ctx.input(0).shape();
    const Shape& y = ctx.input(1).shape();
    if (x.rank() < 2 || y.rank() < 2) {
      throw InvalidArgumentError(StrCat("BatchMatMulV2 takes tensors of rank 2 or more; got shapes ", x, " and ", y));
    }
    GemmSpec spec = ProductSpec(ctx.input(0).dtype(), x, y, adj_x_, adj_y_);
    const Shape batch_x = x.Sub(0, x.rank() - 2), batch_y = y.Sub(0, y.rank() - 2);
    const Shape batch = BroadcastShapes(batch_x, batch_y);
    Tensor& out = ctx.AllocateOutput(0, batch.Concat(Shape{spec.m, spec.n}));
    if (out.num_elements() == 0) return;
    const auto at = [&](const void* data, int64_t elements) {
      return static_cast<const char*>(data) + elements * static_cast<int64_t>(DTypeSize(spec.dtype));
    };
    const auto plan = cpu::PlanBroadcast<2>(batch, {&batch_x, &batch_y});
    const int64_t size_a = spec.m * spec.k, size_b = spec.k * spec.n, size_c = spec.m * spec.n;
    spec.batches = plan.inner();
    spec.step_a = plan.inner_repeats(0) ? 0 : size_a;
    spec.step_b = plan.inner_repeats(1) ? 0 : size_b;
    spec.step_c = size_c;
    auto* to = static_cast<char*>(out.raw_data());
    cpu::WalkBroadcast(plan, 0, plan.outer(), [&](int64_t first, const std::array<int64_t, 2>& offsets) {
      char* c = to + first * size_c * static_cast<int64_t>(DTypeSize(spec.dtype));
      MultiplyAny(call, spec,
                  {at(ctx.input(0).raw_data(), offsets[0] * size_a), at(ctx.input(1).raw_data(), offsets[1] * size_b),
                   nullptr, c});
    });
  }

 private:
  const bool adj_x_;
  const bool adj_y_;
};

}  // namespace

void Multiply(const CudaCall& call, GemmSpec spec, const GemmOperands& operands) {
  if (spec.m == 0 || spec.n == 0 || spec.batches == 0) return;
  if (spec.k == 0) {
    const auto bytes = static_cast<size_t>(spec.batches * spec.m * spec.n) * DTypeSize(spec.dtype);
    return call.driver().FillAsync(operands.c, 0, bytes, call.stream());
  }
  spec.end = GemmEnd::kPlain;
  const auto bytes = static_cast<int64_t>(DTypeSize(spec.dtype));
  for (int64_t first = 0; first < spec.batches; first += GemmSpec::kMostBatches) {
    GemmSpec part = spec;
    part.batches = std::min(spec.batches - first, GemmSpec::kMostBatches);
    const GemmOperands of_part = {static_cast<const char*>(operands.a) + first * spec.step_a * bytes,
                                  static_cast<const char*>(operands.b) + first * spec.step_b * bytes, nullptr,
                                  static_cast<char*>(operands.c) + first * spec.step_c * bytes};
    Prepare(part, of_part);
    if (EnqueueProducts(call, part, of_part)) continue;
    throw UnimplementedError(StrCat("[cuda/libraries] expected an algorithm of ", FindBlas().Name().name,
                                    " for this; got none: ", CallText(part)));
  }
}

void MultiplyAndEnd(const CudaCall& call, GemmSpec spec, GemmOperands operands, Activation activation,
                    const Tensor& bias, Tensor& out) {
  if (out.num_elements() == 0) return;
  operands.c = out.raw_data();
  // Other activations take a pass over the result, which adds the bias, too.
  const bool can_end = activation == Activation::kNone || activation == Activation::kRelu;
  if (can_end && spec.k > 0 && spec.dtype != DType::kFloat64) {
    operands.bias = bias.raw_data();
    spec.end = activation == Activation::kRelu ? GemmEnd::kBiasRelu : GemmEnd::kBias;
    Prepare(spec, operands);
    if (EnqueueProducts(call, spec, operands)) return;
    operands.bias = nullptr;
  }
  Multiply(call, spec, operands);
  AddBias(call, activation, bias, out);
}

void RegisterMatMulKernels(KernelRegistry& registry) {
  registry.Register<MatMulKernel>("MatMul", kGpu);
  registry.Register<BatchMatMulKernel>("BatchMatMulV2", kGpu);
  registry.Register<FusedMatMulKernel>("_FusedMatMul", kGpu);
}

}  // namespace cohort::cuda
