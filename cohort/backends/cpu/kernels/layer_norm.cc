// LayerNorm and its gradient. A row is a vector along the last axis. Sums over a row use sixteen lanes, which are
// joined in a fixed order. The sums over rows for the gradients of scale and offset have two stages: the rows are
// divided into groups, whose number depends on the shape alone, and then the sums of the groups are added in order. So
// results do not depend on the width of vectors or on the number of threads.
#include <algorithm>
#include <cmath>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/simd.h"
#include "cohort/backends/layer_norm_sizes.h"

namespace cohort {
namespace {

using cpu::Wide;

constexpr int64_t kCostOfNormalizing = 4;  // in simple operations, for ForBlocks

struct RowSumPair {
  double a;
  double b;
};

// Returns the sums of the pairs terms(0), ..., terms(n - 1), whose members are W.
template <typename W, typename Terms>
COHORT_INLINE RowSumPair SumRow(int64_t n, const Terms& terms) {
  constexpr int64_t kLanes = 16;
  constexpr int64_t kBlock = 1024;  // elements that are added in W before they are added in float64
  RowSumPair total{0, 0};
  int64_t at = 0;
  while (n - at >= kLanes) {
    const int64_t end = at + (n - at < kBlock ? (n - at) / kLanes * kLanes : kBlock);
    W a[kLanes] = {}, b[kLanes] = {};
    for (; at < end; at += kLanes) {
#pragma omp simd
      for (int64_t l = 0; l < kLanes; ++l) {
        const auto term = terms(at + l);
        a[l] += term.a;
        b[l] += term.b;
      }
    }
    for (int64_t half = kLanes / 2; half > 0; half /= 2) {
      for (int64_t l = 0; l < half; ++l) {
        a[l] += a[l + half];
        b[l] += b[l + half];
      }
    }
    total.a += static_cast<double>(a[0]);
    total.b += static_cast<double>(b[0]);
  }
  for (; at < n; ++at) {
    const auto term = terms(at);
    total.a += static_cast<double>(term.a);
    total.b += static_cast<double>(term.b);
  }
  return total;
}

template <typename W>
struct RowTerms {
  W a;
  W b;
};

template <typename T>
struct LayerNormArgs {
  using W = Wide<T>;
  const T* x;
  const W* scale;
  const W* offset;
  T* y;  // may be x
  W* mean;
  W* inverse;
  int64_t columns;
  float epsilon;
};

template <typename T>
struct LayerNormBody {
  using W = Wide<T>;

  static COHORT_INLINE void Run(const LayerNormArgs<T>* args, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) Row(*args, row);
  }

  static COHORT_INLINE void Row(const LayerNormArgs<T>& args, int64_t row) {
    const int64_t n = args.columns;
    const T* x = args.x + row * n;
    T* y = args.y + row * n;
    const W *scale = args.scale, *offset = args.offset;
    const auto count = static_cast<double>(n);
    const auto values = [=](int64_t i) COHORT_INLINE_LAMBDA { return RowTerms<W>{static_cast<W>(x[i]), W(0)}; };
    const W mean = static_cast<W>(SumRow<W>(n, values).a / count);
    const auto squares = [=](int64_t i) COHORT_INLINE_LAMBDA {
      const W centred = static_cast<W>(x[i]) - mean;
      return RowTerms<W>{centred * centred, W(0)};
    };
    const W variance = static_cast<W>(SumRow<W>(n, squares).a / count);
    const W inverse = W(1) / std::sqrt(variance + static_cast<W>(args.epsilon));
    args.mean[row] = mean;
    args.inverse[row] = inverse;
    COHORT_INDEPENDENT_PASSES
    for (int64_t i = 0; i < n; ++i) {
      y[i] = static_cast<T>((static_cast<W>(x[i]) - mean) * (inverse * scale[i]) + offset[i]);
    }
  }
};

// With g = dy * scale and normal = (x - mean) * inverse:
// dx = inverse * (g - mean(g) - normal * mean(g * normal)).
template <typename T>
struct LayerNormGradArgs {
  using W = Wide<T>;
  const T* dy;
  const T* x;
  const W* scale;
  const W* mean;
  const W* inverse;
  T* dx;         // may be dy or x
  W* some;       // [groups, 2, columns]: sums of some rows
  double* sums;  // [groups, 2, columns]: sums of dy * normal and of dy over the rows of a group
  int64_t rows;
  int64_t columns;
  int64_t groups;
};

template <typename T>
struct LayerNormGradBody {
  using W = Wide<T>;
  static constexpr int64_t kSomeRows = 32;  // rows that are added in W before they are added in float64

  static COHORT_INLINE void Run(const LayerNormGradArgs<T>* args, int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) Group(*args, group);
  }

  static COHORT_INLINE void Group(const LayerNormGradArgs<T>& args, int64_t group) {
    const int64_t n = 2 * args.columns;
    W* some = args.some + group * n;
    double* sums = args.sums + group * n;
    std::fill_n(sums, n, 0.0);
    const int64_t last = args.rows * (group + 1) / args.groups;
    for (int64_t row = args.rows * group / args.groups; row < last;) {
      const int64_t end = std::min(row + kSomeRows, last);
      std::fill_n(some, n, W(0));
      for (; row < end; ++row) Row(args, row, some);
      COHORT_INDEPENDENT_PASSES
      for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(some[i]);
    }
  }

  static COHORT_INLINE void Row(const LayerNormGradArgs<T>& args, int64_t row, W* some) {
    const int64_t n = args.columns;
    const T *dy = args.dy + row * n, *x = args.x + row * n;
    T* dx = args.dx + row * n;
    const W* scale = args.scale;
    const W mean = args.mean[row], inverse = args.inverse[row];
    const RowSumPair sums = SumRow<W>(n, [=](int64_t i) COHORT_INLINE_LAMBDA {
      const W g = static_cast<W>(dy[i]) * scale[i];
      return RowTerms<W>{g, g * ((static_cast<W>(x[i]) - mean) * inverse)};
    });
    const W mean_g = static_cast<W>(sums.a / static_cast<double>(n));
    const W mean_product = static_cast<W>(sums.b / static_cast<double>(n));
    W *d_scale = some, *d_offset = some + n;
    COHORT_INDEPENDENT_PASSES
    for (int64_t i = 0; i < n; ++i) {
      const W d = static_cast<W>(dy[i]);
      const W normal = (static_cast<W>(x[i]) - mean) * inverse;
      d_scale[i] += d * normal;
      d_offset[i] += d;
      dx[i] = static_cast<T>(inverse * (d * scale[i] - mean_g - normal * mean_product));
    }
  }
};

template <typename T>
class LayerNormKernel final : public OpKernel {
 public:
  explicit LayerNormKernel(const KernelConstruction& c) : epsilon_(c.attr<float>("epsilon")) {}

  void Compute(KernelContext& ctx) override {
    using W = Wide<T>;
    const Shape shape = ctx.input(0).shape();
    const LayerNormSizes sizes = LayerNormSizes::OfForward(ctx);
    const T* x = ctx.input(0).data<T>();
    Tensor& y = ctx.ForwardInputOrAllocate(0, 0, shape);
    Tensor& mean = ctx.AllocateOutput(1, sizes.statistics);
    Tensor& inverse = ctx.AllocateOutput(2, sizes.statistics);
    const LayerNormArgs<T> args{x,
                                ctx.input(1).data<W>(),
                                ctx.input(2).data<W>(),
                                y.data<T>(),
                                mean.data<W>(),
                                inverse.data<W>(),
                                sizes.columns,
                                epsilon_};
    cpu::ForBlocks(
        sizes.rows, ctx.num_threads(), [&](int64_t begin, int64_t end) { run_(&args, begin, end); },
        sizes.columns * kCostOfNormalizing);
  }

 private:
  const float epsilon_;
  void (*const run_)(const LayerNormArgs<T>*, int64_t, int64_t) = cpu::Widest<LayerNormBody<T>>(true);
};

template <typename T>
class LayerNormGradKernel final : public OpKernel {
 public:
  explicit LayerNormGradKernel(const KernelConstruction&) {}

  void Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(1).shape();
    const LayerNormSizes sizes = LayerNormSizes::OfGradient(ctx);
    const int64_t groups = std::clamp(sizes.rows / LayerNormGradBody<T>::kSomeRows, int64_t{1}, kMostGroups);
    const Shape partial{groups, 2, sizes.columns};
    Tensor some = ctx.AllocateTemp(kDTypeOf<W>, partial), sums = ctx.AllocateTemp(DType::kFloat64, partial);
    LayerNormGradArgs<T> args{ctx.input(0).data<T>(),
                              ctx.input(1).data<T>(),
                              ctx.input(2).data<W>(),
                              ctx.input(3).data<W>(),
                              ctx.input(4).data<W>(),
                              nullptr,
                              some.data<W>(),
                              sums.data<double>(),
                              sizes.rows,
                              sizes.columns,
                              groups};
    args.dx = ctx.ForwardInputOrAllocate({0, 1}, 0, shape).data<T>();
    cpu::ForBlocks(
        groups, ctx.num_threads(), [&](int64_t begin, int64_t end) { run_(&args, begin, end); },
        std::max<int64_t>(1, shape.num_elements() / groups * kCostOfNormalizing));
    AddGroups(args, 0, ctx.AllocateOutput(1, Shape{sizes.columns}), ctx.num_threads());
    AddGroups(args, 1, ctx.AllocateOutput(2, Shape{sizes.columns}), ctx.num_threads());
  }

 private:
  using W = Wide<T>;
  static constexpr int64_t kMostGroups = 64;

  static void AddGroups(const LayerNormGradArgs<T>& args, int64_t which, Tensor& out, int threads) {
    W* to = out.data<W>();
    cpu::ForBlocks(
        args.columns, threads,
        [&](int64_t begin, int64_t end) {
          double* first = args.sums + which * args.columns;
          for (int64_t group = 1; group < args.groups; ++group) {
            const double* more = first + group * 2 * args.columns;
            for (int64_t i = begin; i < end; ++i) first[i] += more[i];
          }
          for (int64_t i = begin; i < end; ++i) to[i] = static_cast<W>(first[i]);
        },
        args.groups);
  }

  void (*const run_)(const LayerNormGradArgs<T>*, int64_t, int64_t) = cpu::Widest<LayerNormGradBody<T>>(true);
};

template <template <typename> class Kernel>
void RegisterLayerNormKernel(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    return cpu::ForFloating(c.attr<DType>("T"), c.node.op_name(), [&](auto tag) -> std::unique_ptr<OpKernel> {
      return std::make_unique<Kernel<decltype(tag)>>(c);
    });
  });
}

}  // namespace

void RegisterLayerNormKernels(KernelRegistry& registry) {
  RegisterLayerNormKernel<LayerNormKernel>(registry, "LayerNorm");
  RegisterLayerNormKernel<LayerNormGradKernel>(registry, "LayerNormGrad");
}

}  // namespace cohort
