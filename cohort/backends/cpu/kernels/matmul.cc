// Matrix products. Product multiplies two matrices: by loops of our own if they are tiny or if oneDNN does not have the
// dtype, otherwise by oneDNN. MatMulKernel, BatchMatMulKernel and FusedMatMulKernel use it. The fused kernel works on
// blocks of rows, and adds bias and activation while a block is in the cache.
#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>

#include "cohort/backends/cpu/kernels/activation.h"
#include "cohort/backends/cpu/kernels/bfloat16_matmul.h"
#include "cohort/backends/cpu/kernels/broadcast.h"
#include "cohort/backends/cpu/kernels/gemm.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"

namespace cohort {
namespace {

using cpu::GemmShape;

// Products with fewer multiplications than this use our own loops, which need no set-up.
constexpr int64_t kTinyProduct = 16 * 16 * 16;

// Product of two matrices of type T.
template <typename T>
class Product {
 public:
  void Run(KernelContext& ctx, const GemmShape& s, const T* a, const T* b, T* c) {
    if (s.m == 0 || s.n == 0) return;
    if (s.k == 0) {
      std::memset(static_cast<void*>(c), 0, static_cast<size_t>(s.m * s.n) * sizeof(T));
      return;
    }
    const bool tiny = s.m * s.n * s.k <= kTinyProduct;
    if constexpr (std::is_same_v<T, float>) {
      if (!tiny) return RunFloat(ctx, s, a, b, c);
    }
    if constexpr (std::is_same_v<T, bfloat16>) {
      UseThreads(ctx.num_threads());
      if (!tiny && bfloat16_.Run(ctx, s, a, b, c)) return;
    }
    gemm_.Run(s, a, b, c, ctx.num_threads());
  }

 private:
  // oneDNN takes the calling thread's OpenMP setting.
  static void UseThreads(int threads) {
    if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
  }

  static void RunFloat(KernelContext& ctx, const GemmShape& s, const float* a, const float* b, float* c) {
    UseThreads(ctx.num_threads());
    const dnnl_status_t status = dnnl_sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.m, s.n, s.k, 1.0f,
                                            a, s.transpose_a ? s.m : s.k, b, s.transpose_b ? s.k : s.n, 0.0f, c, s.n);
    if (status != dnnl_success) {
      throw InternalError(StrCat("[backends/cpu] dnnl_sgemm of [", s.m, ",", s.k, "] and [", s.k, ",", s.n,
                                 "] failed with status ", static_cast<int>(status)));
    }
  }

  struct Nothing {};
  cpu::Gemm<T> gemm_;
  std::conditional_t<std::is_same_v<T, bfloat16>, cpu::Bfloat16MatMul, Nothing> bfloat16_;
};

// Sizes of the product of the matrices in the last two dimensions.
GemmShape ProductShape(const Shape& a, const Shape& b, bool transpose_a, bool transpose_b) {
  const int ra = a.rank(), rb = b.rank();
  GemmShape s{a.dim(transpose_a ? ra - 1 : ra - 2), b.dim(transpose_b ? rb - 2 : rb - 1),
              a.dim(transpose_a ? ra - 2 : ra - 1), transpose_a, transpose_b};
  const int64_t kb = b.dim(transpose_b ? rb - 1 : rb - 2);
  if (s.k != kb) {
    throw InvalidArgumentError(StrCat("Matrix size-incompatible: In[0]: ", a, transpose_a ? " transposed" : "",
                                      ", In[1]: ", b, transpose_b ? " transposed" : "", ": inner dimensions ", s.k,
                                      " and ", kb, " differ"));
  }
  return s;
}

template <typename T>
class MatMulKernel final : public OpKernel {
 public:
  explicit MatMulKernel(const KernelConstruction& c)
      : transpose_a_(c.attr<bool>("transpose_a")), transpose_b_(c.attr<bool>("transpose_b")) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& a = ctx.input(0);
    const Tensor& b = ctx.input(1);
    if (a.shape().rank() != 2 || b.shape().rank() != 2) {
      throw InvalidArgumentError(StrCat("MatMul takes two matrices; got shapes ", a.shape(), " and ", b.shape()));
    }
    const GemmShape s = ProductShape(a.shape(), b.shape(), transpose_a_, transpose_b_);
    Tensor& out = ctx.AllocateOutput(0, Shape{s.m, s.n});
    product_.Run(ctx, s, a.data<T>(), b.data<T>(), out.data<T>());
  }

 private:
  Product<T> product_;
  bool transpose_a_;
  bool transpose_b_;
};

// c[i, j] += bias[j]
template <typename T>
struct AddBiasBody {
  static COHORT_INLINE void Run(T* c, const T* bias, int64_t rows, int64_t n) {
    for (int64_t i = 0; i < rows; ++i) {
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) {
        c[i * n + j] = static_cast<T>(static_cast<cpu::Wide<T>>(c[i * n + j]) + static_cast<cpu::Wide<T>>(bias[j]));
      }
    }
  }
};

// Computes activation(a b + bias), with the same rounding as the kernels of MatMul, BiasAdd and the activation one
// after another. Bias and activation are applied to rows that are still in the cache.
template <typename T>
class FusedMatMulKernel final : public OpKernel {
 public:
  explicit FusedMatMulKernel(const KernelConstruction& c)
      : transpose_a_(c.attr<bool>("transpose_a")), transpose_b_(c.attr<bool>("transpose_b")) {
    const std::string& activation = c.attr<std::string>("activation");
    if (activation.empty()) return;
    activation_ = cpu::FindActivation(activation, c.attr<DType>("T"));
    if (activation_.loop == nullptr) {
      throw InvalidArgumentError(StrCat("[backends/cpu] there is no activation '", activation, "'"));
    }
  }

  void Compute(KernelContext& ctx) override {
    const Tensor& a = ctx.input(0);
    const Tensor& b = ctx.input(1);
    const Tensor& bias = ctx.input(2);
    if (a.shape().rank() != 2 || b.shape().rank() != 2) {
      throw InvalidArgumentError(StrCat("MatMul takes two matrices; got shapes ", a.shape(), " and ", b.shape()));
    }
    const GemmShape s = ProductShape(a.shape(), b.shape(), transpose_a_, transpose_b_);
    if (bias.shape().rank() != 1 || bias.shape().dim(0) != s.n) {
      throw InvalidArgumentError(StrCat("[backends/cpu] expected a bias of shape [", s.n, "] for a product of shape [",
                                        s.m, ",", s.n, "]; got ", bias.shape()));
    }
    T* out = ctx.AllocateOutput(0, Shape{s.m, s.n}).data<T>();
    const int64_t rows = RowsAtOnce(s);
    for (int64_t i = 0; i < s.m; i += rows) {
      GemmShape part = s;
      part.m = std::min(rows, s.m - i);
      product_.Run(ctx, part, a.data<T>() + i * s.k, b.data<T>(), out + i * s.n);
      Finish(ctx, out + i * s.n, bias.data<T>(), part.m, s.n);
    }
  }

 private:
  // Returns how many rows of the product are computed before bias and activation are applied. They fit into the
  // second-level cache, but are so many that packing b again for each block hardly counts. Returns all rows if a's rows
  // are not contiguous, or if the product is so deep that bias and activation hardly count.
  static int64_t RowsAtOnce(const GemmShape& s) {
    constexpr int64_t kCacheBytes = 512 * 1024;
    constexpr int64_t kFewRows = 256;
    constexpr int64_t kDeep = 256;
    if (s.transpose_a || s.n == 0 || s.k > kDeep) return std::max<int64_t>(1, s.m);
    const int64_t rows = std::max<int64_t>(kFewRows, kCacheBytes / (s.n * static_cast<int64_t>(sizeof(T))));
    return s.m < 2 * rows ? std::max<int64_t>(1, s.m) : rows;
  }

  void Finish(KernelContext& ctx, T* c, const T* bias, int64_t rows, int64_t n) const {
    cpu::ForBlocks(
        rows, ctx.num_threads(),
        [&](int64_t begin, int64_t end) {
          add_bias_(c + begin * n, bias, end - begin, n);
          if (activation_.loop != nullptr) activation_.loop(c + begin * n, c + begin * n, (end - begin) * n);
        },
        n * (1 + activation_.cost));
  }

  Product<T> product_;
  const bool transpose_a_;
  const bool transpose_b_;
  cpu::ActivationLoop activation_;
  void (*const add_bias_)(T*, const T*, int64_t, int64_t) = cpu::Widest<AddBiasBody<T>>();
};

template <typename T>
class BatchMatMulKernel final : public OpKernel {
 public:
  explicit BatchMatMulKernel(const KernelConstruction& c)
      : adj_x_(c.attr<bool>("adj_x")), adj_y_(c.attr<bool>("adj_y")) {}

  void Compute(KernelContext& ctx) override {
    const Shape& x = ctx.input(0).shape();
    const Shape& y = ctx.input(1).shape();
    if (x.rank() < 2 || y.rank() < 2) {
      throw InvalidArgumentError(StrCat("BatchMatMulV2 takes tensors of rank 2 or more; got shapes ", x, " and ", y));
    }
    const GemmShape s = ProductShape(x, y, adj_x_, adj_y_);
    const Shape batch_x = x.Sub(0, x.rank() - 2), batch_y = y.Sub(0, y.rank() - 2);
    const Shape batch = BroadcastShapes(batch_x, batch_y);
    Tensor& out = ctx.AllocateOutput(0, batch.Concat(Shape{s.m, s.n}));
    if (out.num_elements() == 0) return;
    const T* a = ctx.input(0).data<T>();
    const T* b = ctx.input(1).data<T>();
    T* c = out.data<T>();
    const auto plan = cpu::PlanBroadcast<2>(batch, {&batch_x, &batch_y});
    const int64_t step_a = plan.inner_repeats(0) ? 0 : s.m * s.k, step_b = plan.inner_repeats(1) ? 0 : s.k * s.n;
    cpu::WalkBroadcast(plan, 0, plan.outer(), [&](int64_t at, const std::array<int64_t, 2>& offsets) {
      for (int64_t i = 0; i < plan.inner(); ++i) {
        product_.Run(ctx, s, a + offsets[0] * s.m * s.k + i * step_a, b + offsets[1] * s.k * s.n + i * step_b,
                     c + (at + i) * s.m * s.n);
      }
    });
  }

 private:
  Product<T> product_;
  bool adj_x_;
  bool adj_y_;
};

template <template <typename> class Kernel>
void RegisterProduct(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) {
    return cpu::ForNumbers(c.node.input(0).dtype(), c.node.op_name(),
                           [&]<typename T>(T) -> std::unique_ptr<OpKernel> { return std::make_unique<Kernel<T>>(c); });
  });
}

}  // namespace

void RegisterMatMulKernels(KernelRegistry& registry) {
  RegisterProduct<MatMulKernel>(registry, "MatMul");
  RegisterProduct<BatchMatMulKernel>(registry, "BatchMatMulV2");
  registry.Register("_FusedMatMul", "CPU", [](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    return cpu::ForFloating(c.attr<DType>("T"), c.node.op_name(), [&]<typename T>(T) -> std::unique_ptr<OpKernel> {
      return std::make_unique<FusedMatMulKernel<T>>(c);
    });
  });
}

}  // namespace cohort
