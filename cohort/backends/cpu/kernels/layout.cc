#include <vector>

#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/strided_copy.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

void Transpose(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const std::vector<int> perm = ops::CheckedPermutation(ops::IntegerValues(ctx.input(1)), x.shape().rank());
  Shape shape;
  for (const int axis : perm) shape.AddDim(x.shape().dim(axis));
  const auto from = cpu::DenseStrides(x.shape()), to = cpu::DenseStrides(shape);
  cpu::StridedLayout layout;
  for (int i = 0; i < shape.rank(); ++i) {
    layout.Add(shape.dim(i), from[static_cast<size_t>(perm[static_cast<size_t>(i)])], to[static_cast<size_t>(i)]);
  }
  const bool unmoved = layout.rank() == 0 || (layout.rank() == 1 && layout.dim(0).from == 1);
  if (unmoved || x.num_elements() == 0) return ctx.SetOutput(0, x.Reshaped(shape));
  Tensor& y = ctx.AllocateOutput(0, shape);
  cpu::ForElements(x.dtype(), "Transpose", [&]<typename T>(T) {
    cpu::CopyStrided(layout, static_cast<const T*>(x.raw_data()), static_cast<T*>(y.raw_data()), ctx.num_threads());
    return 0;
  });
}

void Reverse(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Shape& shape = x.shape();
  const std::vector<bool> reversed = ops::AxisMask(ops::IntegerValues(ctx.input(1)), shape.rank());
  const auto strides = cpu::DenseStrides(shape);
  cpu::StridedLayout layout;
  int64_t first = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t stride = strides[static_cast<size_t>(i)];
    const bool backwards = reversed[static_cast<size_t>(i)];
    if (backwards) first += (shape.dim(i) - 1) * stride;
    layout.Add(shape.dim(i), backwards ? -stride : stride, stride);
  }
  Tensor& y = ctx.AllocateOutput(0, shape);
  if (y.num_elements() == 0) return;
  cpu::ForElements(x.dtype(), "ReverseV2", [&]<typename T>(T) {
    cpu::CopyStrided(layout, static_cast<const T*>(x.raw_data()) + first, static_cast<T*>(y.raw_data()),
                     ctx.num_threads());
    return 0;
  });
}

template <typename T>
void Invert(const Tensor& x, Tensor& y) {
  const int64_t n = x.num_elements();
  const T* in = x.data<T>();
  T* out = y.data<T>();
  std::fill(out, out + n, T(-1));
  for (int64_t i = 0; i < n; ++i) {
    if (in[i] < 0 || in[i] >= n || out[in[i]] != T(-1)) {
      throw InvalidArgumentError(
          StrCat("x[", i, "] = ", in[i], " is out of [0, ", n, ") or is there twice; shape ", x.shape()));
    }
    out[in[i]] = static_cast<T>(i);
  }
}

void InvertPermutation(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.shape().rank() != 1) throw InvalidArgumentError(StrCat("a permutation is a vector; got shape ", x.shape()));
  Tensor& y = ctx.AllocateOutput(0, x.shape());
  if (x.dtype() == DType::kInt32)
    Invert<int32_t>(x, y);
  else
    Invert<int64_t>(x, y);
}

}  // namespace

void RegisterLayoutKernels(KernelRegistry& registry) {
  registry.RegisterFn("Transpose", "CPU", Transpose);
  registry.RegisterFn("ReverseV2", "CPU", Reverse);
  registry.RegisterFn("InvertPermutation", "CPU", InvertPermutation);
}

}  // namespace cohort
