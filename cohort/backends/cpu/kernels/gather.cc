// Kernels that look up by index: Gather with batch dimensions, OneHot and Where. Indices are checked before anything is
// copied.
#include <algorithm>
#include <memory>
#include <string>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/unique.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

// params seen as [batch, outer, dim, inner], indices as [batch, n].
struct GatherSizes {
  int64_t batch, outer, dim, inner, n;
};

template <typename Index>
void CheckIndices(const Tensor& indices, int64_t dim, const Tensor& params) {
  const Index* values = indices.data<Index>();
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    if (values[i] < 0 || values[i] >= dim) {
      throw InvalidArgumentError(StrCat("indices[", i, "] = ", values[i], " is not in [0, ", dim,
                                        "); indices have shape ", indices.shape(), ", params ", params.shape()));
    }
  }
}

template <typename T, typename Index>
void CopyGathered(const GatherSizes& s, const T* params, const Index* indices, T* out, int threads) {
  cpu::ForBlocks(
      s.batch * s.outer * s.n, threads,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t block = i / s.n;  // batch * outer
          const int64_t row = indices[block / s.outer * s.n + i % s.n];
          const T* from = params + (block * s.dim + row) * s.inner;
          if (s.inner == 1)
            out[i] = *from;
          else
            std::copy(from, from + s.inner, out + i * s.inner);
        }
      },
      s.inner);
}

class GatherKernel final : public OpKernel {
 public:
  explicit GatherKernel(const KernelConstruction& c) : batch_dims_(static_cast<int>(c.attr<int64_t>("batch_dims"))) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& params = ctx.input(0);
    const Tensor& indices = ctx.input(1);
    const Shape& p = params.shape();
    const Shape& x = indices.shape();
    if (p.rank() == 0) throw InvalidArgumentError("params must be at least 1 dimensional; got a scalar");
    const int axis = ops::NormalizeAxis(ops::IntegerScalar(ctx.input(2), "axis"), p.rank());
    const int batch = batch_dims_ < 0 ? batch_dims_ + x.rank() : batch_dims_;
    if (batch < 0 || batch > x.rank() || batch > axis || p.Sub(0, batch) != x.Sub(0, batch)) {
      throw InvalidArgumentError(StrCat("batch_dims ", batch_dims_, " does not fit params of shape ", p,
                                        ", indices of shape ", x, " and axis ", axis));
    }
    const GatherSizes s{p.Sub(0, batch).num_elements(), p.Sub(batch, axis).num_elements(), p.dim(axis),
                        p.Sub(axis + 1, p.rank()).num_elements(), x.Sub(batch, x.rank()).num_elements()};
    Tensor& out =
        ctx.AllocateOutput(0, p.Sub(0, axis).Concat(x.Sub(batch, x.rank())).Concat(p.Sub(axis + 1, p.rank())));
    if (indices.dtype() == DType::kInt32)
      Copy<int32_t>(ctx, s, params, indices, out);
    else
      Copy<int64_t>(ctx, s, params, indices, out);
  }

 private:
  template <typename Index>
  static void Copy(KernelContext& ctx, const GatherSizes& s, const Tensor& params, const Tensor& indices, Tensor& out) {
    CheckIndices<Index>(indices, s.dim, params);
    if (out.num_elements() == 0) return;
    cpu::ForElements(params.dtype(), "GatherV2", [&]<typename T>(T) {
      CopyGathered(s, static_cast<const T*>(params.raw_data()), indices.data<Index>(), static_cast<T*>(out.raw_data()),
                   ctx.num_threads());
      return 0;
    });
  }

  int batch_dims_;
};

class OneHotKernel final : public OpKernel {
 public:
  explicit OneHotKernel(const KernelConstruction& c) : axis_(c.attr<int64_t>("axis")) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& indices = ctx.input(0);
    const Shape& in = indices.shape();
    const int64_t depth = ops::IntegerScalar(ctx.input(1), "depth");
    if (depth < 0) throw InvalidArgumentError(StrCat("depth must be non-negative, got: ", depth));
    if (ctx.input(2).num_elements() != 1 || ctx.input(3).num_elements() != 1) {
      throw InvalidArgumentError(StrCat("on_value and off_value must be scalars; got shapes ", ctx.input(2).shape(),
                                        " and ", ctx.input(3).shape()));
    }
    const int axis = ops::NormalizeAxis(axis_, in.rank() + 1);
    Tensor& out = ctx.AllocateOutput(0, in.Sub(0, axis).Concat(Shape{depth}).Concat(in.Sub(axis, in.rank())));
    const int64_t inner = in.Sub(axis, in.rank()).num_elements();
    cpu::ForElements(out.dtype(), "OneHot", [&]<typename T>(T) {
      T* to = static_cast<T*>(out.raw_data());
      std::fill(to, to + out.num_elements(), *static_cast<const T*>(ctx.input(3).raw_data()));
      const T& on = *static_cast<const T*>(ctx.input(2).raw_data());
      switch (indices.dtype()) {
        case DType::kInt32: Mark(indices.data<int32_t>(), indices.num_elements(), depth, inner, on, to); break;
        case DType::kInt64: Mark(indices.data<int64_t>(), indices.num_elements(), depth, inner, on, to); break;
        default: Mark(indices.data<uint8_t>(), indices.num_elements(), depth, inner, on, to); break;
      }
      return 0;
    });
  }

 private:
  template <typename Index, typename T>
  static void Mark(const Index* indices, int64_t n, int64_t depth, int64_t inner, const T& on, T* to) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t index = static_cast<int64_t>(indices[i]);
      if (index >= 0 && index < depth) to[(i / inner * depth + index) * inner + i % inner] = on;
    }
  }

  int64_t axis_;
};

template <typename T>
void WriteWhere(KernelContext& ctx, const Tensor& x) {
  const T* in = x.data<T>();
  const int64_t n = x.num_elements();
  const auto holds = [&](int64_t i) { return in[i] != static_cast<T>(cpu::Wide<T>(0)); };
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += holds(i) ? 1 : 0;
  const int rank = x.shape().rank();
  int64_t* to = ctx.AllocateOutput(0, Shape{count, rank}).data<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    if (!holds(i)) continue;
    int64_t rest = i;
    for (int d = rank - 1; d >= 0; --d) {
      to[d] = rest % x.shape().dim(d);
      rest /= x.shape().dim(d);
    }
    to += rank;
  }
}

void Where(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.dtype() == DType::kBool) return WriteWhere<bool>(ctx, x);
  cpu::ForAllNumbers(x.dtype(), "Where", [&]<typename T>(T) {
    WriteWhere<T>(ctx, x);
    return 0;
  });
}

}  // namespace

void RegisterGatherKernels(KernelRegistry& registry) {
  registry.Register<GatherKernel>("GatherV2", "CPU");
  registry.Register<OneHotKernel>("OneHot", "CPU");
  registry.RegisterFn("Where", "CPU", Where);
  cpu::RegisterUniqueKernels(registry);
}

}  // namespace cohort
