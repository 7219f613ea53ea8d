// Reductions over axes. A ReductionPlan merges the dimensions, and Folder walks along it and combines rows or columns
// by a reducer (reducers.h). A long reduction is cut into parts of a fixed length, so that the result does not depend
// on the number of threads.
#include <algorithm>
#include <limits>
#include <memory>
#include <type_traits>

#include "cohort/backends/cpu/kernels/arg_extremum.h"
#include "cohort/backends/cpu/kernels/reducers.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/reduction_plan.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"

namespace cohort {
namespace {

// Reduces a tensor of type T by the reducer R along a plan.
template <typename R, typename T>
class Folder {
 public:
  using A = typename R::template Accumulator<T>;

  // `result` has plan.out_elements places, which are set to R's start first.
  void Run(const ReductionPlan& plan, const T* in, A* result, int threads) const {
    std::fill(result, result + plan.out_elements, R::template Start<A>());
    if (plan.in_elements == 0) return;
    if (plan.rank == 0) {
      row_(in, 1, result);
    } else if (plan.rank == 1 && plan.reduced[0]) {
      FoldAll(in, plan.in_elements, result, threads);
    } else if (plan.rank == 2 && plan.reduced[0]) {
      FoldColumns(plan, in, result, threads);
    } else {
      // Kept and reduced dimensions alternate: the first kept one is dimension 0 or 1.
      const int split = plan.reduced[0] ? 1 : 0;
      const int64_t cost = plan.in_elements / plan.dims[static_cast<size_t>(split)];
      cpu::ForBlocks(
          plan.dims[static_cast<size_t>(split)], threads,
          [&](int64_t begin, int64_t end) {
            const auto block = std::make_unique_for_overwrite<A[]>(BlockSize(plan));
            Fold(plan, 0, split, begin, end, in, result, block.get());
          },
          cost);
    }
  }

 private:
  static size_t BlockSize(const ReductionPlan& plan) {
    const size_t last = static_cast<size_t>(plan.rank - 1);
    return plan.reduced[last] ? 0 : static_cast<size_t>(plan.dims[last]);
  }

  // Dimensions from `d` on, of dimension `split` only [begin, end).
  void Fold(const ReductionPlan& plan, int d, int split, int64_t begin, int64_t end, const T* in, A* result,
            A* block) const {
    const size_t at = static_cast<size_t>(d);
    const int64_t first = d == split ? begin : 0;
    const int64_t last = d == split ? end : plan.dims[at];
    const int left = plan.rank - d;
    if (left == 1 && plan.reduced[at]) return row_(in, plan.dims[at], result);
    if (left == 1) return column_(in + first, 1, 0, last - first, result + first, block);
    if (left == 2 && plan.reduced[at]) {
      const int64_t low = d + 1 == split ? begin : 0;
      const int64_t high = d + 1 == split ? end : plan.dims[at + 1];
      return column_(in + low, plan.dims[at], plan.in_stride[at], high - low, result + low, block);
    }
    for (int64_t i = first; i < last; ++i) {
      Fold(plan, d + 1, split, begin, end, in + i * plan.in_stride[at], result + i * plan.out_stride[at], block);
    }
  }

  // Cuts the reduction into parts of a fixed length, so that the result does not depend on the number of threads.
  void FoldAll(const T* in, int64_t n, A* result, int threads) const {
    constexpr int64_t kPart = cpu::kElementsWorthATeam;
    if (n <= kPart) return row_(in, n, result);
    const int64_t count = (n + kPart - 1) / kPart;
    const auto parts = std::make_unique_for_overwrite<A[]>(static_cast<size_t>(count));
    std::fill(parts.get(), parts.get() + count, R::template Start<A>());
    cpu::ForBlocks(
        count, threads,
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            row_(in + i * kPart, std::min(kPart, n - i * kPart), &parts[static_cast<size_t>(i)]);
          }
        },
        kPart);
    using Total = typename R::template Total<A>;
    Total total = static_cast<Total>(*result);
    for (int64_t i = 0; i < count; ++i) total = R::Join(total, static_cast<Total>(parts[static_cast<size_t>(i)]));
    *result = static_cast<A>(total);
  }

  void FoldColumns(const ReductionPlan& plan, const T* in, A* result, int threads) const {
    const int64_t rows = plan.dims[0], n = plan.dims[1];
    cpu::ForBlocks(
        n, threads,
        [&](int64_t begin, int64_t end) {
          const bool blocked = rows > cpu::ColumnBody<R, T>::kRows;
          const auto block = std::make_unique_for_overwrite<A[]>(blocked ? static_cast<size_t>(end - begin) : 0);
          column_(in + begin, rows, n, end - begin, result + begin, block.get());
        },
        rows);
  }

  void (*row_)(const T*, int64_t, A*) = cpu::Widest<cpu::RowBody<R, T>>(true);
  void (*column_)(const T*, int64_t, int64_t, int64_t, A*, A*) = cpu::Widest<cpu::ColumnBody<R, T>>();
};

template <typename R, typename T, bool kMean>
class ReductionKernel final : public OpKernel {
 public:
  explicit ReductionKernel(const KernelConstruction& c) : keep_dims_(c.attr<bool>("keep_dims")) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    const ReductionPlan plan = PlanReduction(x.shape(), ctx.input(1), keep_dims_);
    const bool nothing = plan.rank == 0 || (plan.rank == 1 && !plan.reduced[0]);
    if (nothing && x.num_elements() > 0) return ctx.SetOutput(0, x.Reshaped(plan.output));
    Tensor& out = ctx.AllocateOutput(0, plan.output);
    if constexpr (std::is_same_v<A, T>) {
      folder_.Run(plan, x.data<T>(), out.data<T>(), ctx.num_threads());
      Finish(plan, out.data<T>(), out.data<T>());
    } else {
      Tensor sums = ctx.AllocateTemp(kDTypeOf<A>, plan.output);
      folder_.Run(plan, x.data<T>(), sums.data<A>(), ctx.num_threads());
      Finish(plan, sums.data<A>(), out.data<T>());
    }
  }

 private:
  using A = typename R::template Accumulator<T>;

  static void Finish(const ReductionPlan& plan, const A* sums, T* out) {
    if constexpr (kMean) {
      if (plan.out_elements == 0) return;
      const int64_t count = plan.in_elements / plan.out_elements;
      if (std::is_integral_v<A> && count == 0) {
        throw InvalidArgumentError("the mean of no integers does not exist");
      }
      const A divisor = static_cast<A>(count);
      for (int64_t i = 0; i < plan.out_elements; ++i) out[i] = static_cast<T>(sums[i] / divisor);
    } else if constexpr (!std::is_same_v<A, T>) {
      for (int64_t i = 0; i < plan.out_elements; ++i) out[i] = static_cast<T>(sums[i]);
    }
  }

  Folder<R, T> folder_;
  bool keep_dims_;
};

template <typename R, bool kMean = false>
void RegisterReduction(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) {
    return cpu::ForAllNumbers(
        c.node.input(0).dtype(), c.node.op_name(),
        [&]<typename T>(T) -> std::unique_ptr<OpKernel> { return std::make_unique<ReductionKernel<R, T, kMean>>(c); });
  });
}

template <typename R>
void RegisterLogicalReduction(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    return std::make_unique<ReductionKernel<R, bool, false>>(c);
  });
}

}  // namespace

void RegisterReductionKernels(KernelRegistry& registry) {
  RegisterReduction<cpu::SumReducer>(registry, "Sum");
  RegisterReduction<cpu::MeanReducer, true>(registry, "Mean");
  RegisterReduction<cpu::MaxReducer>(registry, "Max");
  RegisterReduction<cpu::MinReducer>(registry, "Min");
  RegisterReduction<cpu::ProdReducer>(registry, "Prod");
  RegisterLogicalReduction<cpu::AllReducer>(registry, "All");
  RegisterLogicalReduction<cpu::AnyReducer>(registry, "Any");
  cpu::RegisterArgKernels(registry);
}

}  // namespace cohort
