// Softmax, LogSoftmax and the cross-entropies with logits. ForRows gives blocks of rows to threads. For a block,
// Exponentials computes e^(x - largest) of each row into scratch memory, and a struct such as SoftmaxRow makes the op's
// result of it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cohort/backends/cpu/kernels/exponential.h"
#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/simd.h"
#include "cohort/device/kernel.h"

namespace cohort {
namespace {

using cpu::Wide;

constexpr int64_t kCostOfElement = 12;  // in simple operations, for ForBlocks

// If there are few classes, kLanes rows are computed together, one in each vector lane, because a loop over the classes
// of one row would be shorter than a vector. If there are many classes, rows are computed one by one. Scratch holds
// e^(x - largest of its row), at [class][row] or [class].
constexpr int64_t kLanes = 16;

template <typename T, bool kFewClasses>
struct RowBlock {
  using W = Wide<T>;
  static constexpr int64_t kRows = kFewClasses ? kLanes : 1;

  W* scratch;
  W largest[kRows];
  W sum[kRows];

  COHORT_INLINE W Exponential(int64_t row, int64_t i) const { return scratch[kFewClasses ? i * kLanes + row : i]; }
};

template <typename T>
COHORT_INLINE void Exponentials(const T* x, int64_t, int64_t n, RowBlock<T, false>& block) {
  using W = Wide<T>;
  W largest = -std::numeric_limits<W>::infinity();
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) {
    const auto value = static_cast<W>(x[i]);
    largest = value > largest ? value : largest;
  }
  W sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const W e = cpu::Exp(static_cast<W>(x[i]) - largest);
    block.scratch[i] = e;
    sum += e;
  }
  block.largest[0] = largest;
  block.sum[0] = sum;
}

// For `rows` <= kLanes rows. Unused lanes compute finite numbers that are not read.
template <typename T>
COHORT_INLINE void Exponentials(const T* x, int64_t rows, int64_t n, RowBlock<T, true>& block) {
  using W = Wide<T>;
  for (int64_t r = 0; r < kLanes; ++r) {
    block.largest[r] = r < rows ? static_cast<W>(x[r * n]) : W(0);
    block.sum[r] = 0;
  }
  for (int64_t i = 0; i < n; ++i) {
    W* lane = block.scratch + i * kLanes;
    for (int64_t r = 0; r < kLanes; ++r) lane[r] = r < rows ? static_cast<W>(x[r * n + i]) : W(0);
#pragma omp simd
    for (int64_t r = 0; r < kLanes; ++r) block.largest[r] = lane[r] > block.largest[r] ? lane[r] : block.largest[r];
  }
  for (int64_t i = 0; i < n; ++i) {
    W* lane = block.scratch + i * kLanes;
#pragma omp simd
    for (int64_t r = 0; r < kLanes; ++r) {
      lane[r] = cpu::Exp(lane[r] - block.largest[r]);
      block.sum[r] += lane[r];
    }
  }
}

// Each struct computes the result of one op for a row, whose number in the block is r. Outputs may be the memory of x.

template <typename T, bool kFewClasses>
struct SoftmaxRow {
  static COHORT_INLINE void Finish(const RowBlock<T, kFewClasses>& block, int64_t r, const T*, T* out, int64_t n) {
    const Wide<T> scale = 1 / block.sum[r];
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(block.Exponential(r, i) * scale);
  }
};

template <typename T, bool kFewClasses>
struct LogSoftmaxRow {
  static COHORT_INLINE void Finish(const RowBlock<T, kFewClasses>& block, int64_t r, const T* x, T* out, int64_t n) {
    const Wide<T> largest = block.largest[r];
    const Wide<T> log_sum = std::log(block.sum[r]);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(static_cast<Wide<T>>(x[i]) - largest - log_sum);
  }
};

// loss = sum_i t_i (log sum - (x_i - largest)); backprop = softmax - t.
template <typename T, bool kFewClasses>
COHORT_INLINE T FinishDenseLoss(const RowBlock<T, kFewClasses>& block, int64_t r, const T* x, const T* target,
                                T* backprop, int64_t n) {
  using W = Wide<T>;
  const W largest = block.largest[r];
  const W log_sum = std::log(block.sum[r]);
  const W scale = 1 / block.sum[r];
  W total = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto t = static_cast<W>(target[i]);
    const W term = t * (log_sum - (static_cast<W>(x[i]) - largest));
    total += t == 0 ? W(0) : term;  // 0 log 0 = 0
    backprop[i] = static_cast<T>(block.Exponential(r, i) * scale - t);
  }
  return static_cast<T>(total);
}

template <typename T, bool kFewClasses>
COHORT_INLINE T FinishSparseLoss(const RowBlock<T, kFewClasses>& block, int64_t r, const T* x, int64_t label,
                                 T* backprop, int64_t n) {
  using W = Wide<T>;
  const auto chosen = static_cast<W>(x[label]);
  const W scale = 1 / block.sum[r];
  const W of_label = block.Exponential(r, label) * scale - 1;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) backprop[i] = static_cast<T>(block.Exponential(r, i) * scale);
  backprop[label] = static_cast<T>(of_label);
  return static_cast<T>(std::log(block.sum[r]) - (chosen - block.largest[r]));
}

// finish(block, number in the block, row) for rows [begin, end).
template <typename T, bool kFewClasses, typename Finish>
COHORT_INLINE void ForEachRow(const T* x, Wide<T>* scratch, int64_t begin, int64_t end, int64_t n,
                              const Finish& finish) {
  RowBlock<T, kFewClasses> block;
  block.scratch = scratch;
  for (int64_t row = begin; row < end; row += block.kRows) {
    const int64_t rows = std::min(block.kRows, end - row);
    Exponentials(x + row * n, rows, n, block);
    for (int64_t r = 0; r < rows; ++r) finish(block, r, row + r);
  }
}

template <typename T, bool kFewClasses, template <typename, bool> class Row>
struct RowsBody {
  static COHORT_INLINE void Run(const T* x, T* y, Wide<T>* scratch, int64_t begin, int64_t end, int64_t n) {
    ForEachRow<T, kFewClasses>(x, scratch, begin, end, n,
                               [=](const auto& block, int64_t r, int64_t row) COHORT_INLINE_LAMBDA {
                                 Row<T, kFewClasses>::Finish(block, r, x + row * n, y + row * n, n);
                               });
  }
};

template <typename T, bool kFewClasses>
struct DenseLossBody {
  static COHORT_INLINE void Run(const T* x, const T* labels, T* loss, T* backprop, Wide<T>* scratch, int64_t begin,
                                int64_t end, int64_t n) {
    ForEachRow<T, kFewClasses>(
        x, scratch, begin, end, n, [=](const auto& block, int64_t r, int64_t row) COHORT_INLINE_LAMBDA {
          loss[row] = FinishDenseLoss<T>(block, r, x + row * n, labels + row * n, backprop + row * n, n);
        });
  }
};

template <typename T, bool kFewClasses, typename Label>
struct SparseLossBody {
  static COHORT_INLINE void Run(const T* x, const Label* labels, T* loss, T* backprop, Wide<T>* scratch, int64_t begin,
                                int64_t end, int64_t n) {
    ForEachRow<T, kFewClasses>(
        x, scratch, begin, end, n, [=](const auto& block, int64_t r, int64_t row) COHORT_INLINE_LAMBDA {
          loss[row] =
              FinishSparseLoss<T>(block, r, x + row * n, static_cast<int64_t>(labels[row]), backprop + row * n, n);
        });
  }
};

bool HasFewClasses(int64_t classes) { return classes < kLanes; }

// body(scratch, begin, end) over blocks of rows, with scratch for a RowBlock.
template <typename W, typename Body>
void ForRows(KernelContext& ctx, int64_t rows, int64_t classes, const Body& body) {
  cpu::ForBlocks(
      rows, ctx.num_threads(),
      [&](int64_t begin, int64_t end) {
        constexpr int64_t kOnStack = kLanes * kLanes;
        alignas(64) W on_stack[kOnStack];
        std::vector<W> on_heap(static_cast<size_t>(classes > kOnStack ? classes : 0));
        body(classes > kOnStack ? on_heap.data() : on_stack, begin, end);
      },
      classes * kCostOfElement);
}

template <typename T, template <typename, bool> class Row>
void ComputeSoftmax(KernelContext& ctx) {
  const Tensor& logits = ctx.input(0);
  const Shape& shape = logits.shape();
  if (shape.rank() < 1) throw InvalidArgumentError("[kernels/softmax] expected logits of rank 1 or more; got a scalar");
  const int64_t classes = shape.dim(shape.rank() - 1);
  const int64_t rows = classes == 0 ? 0 : logits.num_elements() / classes;
  Tensor& out = ctx.ForwardInputOrAllocate(0, 0, shape);
  const T* x = logits.data<T>();
  T* y = out.data<T>();
  const auto run =
      HasFewClasses(classes) ? cpu::Widest<RowsBody<T, true, Row>>(true) : cpu::Widest<RowsBody<T, false, Row>>(true);
  ForRows<Wide<T>>(ctx, rows, classes,
                   [&](Wide<T>* scratch, int64_t begin, int64_t end) { run(x, y, scratch, begin, end, classes); });
}

void CheckRows(const Tensor& logits, const Tensor& labels, bool sparse) {
  const bool fits = logits.shape().rank() == 2 &&
                    (sparse ? labels.shape() == logits.shape().Sub(0, 1) : labels.shape() == logits.shape());
  if (!fits) {
    throw InvalidArgumentError(StrCat("[kernels/softmax] expected logits [batch, classes] and labels ",
                                      sparse ? "[batch]" : "[batch, classes]", "; got ", logits.shape(), " and ",
                                      labels.shape()));
  }
}

template <typename T>
void ComputeDenseLoss(KernelContext& ctx) {
  const Tensor& logits = ctx.input(0);
  CheckRows(logits, ctx.input(1), false);
  const int64_t rows = logits.shape().dim(0);
  const int64_t classes = logits.shape().dim(1);
  Tensor& loss = ctx.AllocateOutput(0, Shape{rows});
  Tensor& backprop = ctx.ForwardInputOrAllocate(0, 1, logits.shape());
  if (classes == 0) {  // an empty sum; the loops below read a first class
    std::fill_n(loss.data<T>(), rows, T(0));
    return;
  }
  const T* x = logits.data<T>();
  const T* t = ctx.input(1).data<T>();
  const auto run =
      HasFewClasses(classes) ? cpu::Widest<DenseLossBody<T, true>>(true) : cpu::Widest<DenseLossBody<T, false>>(true);
  ForRows<Wide<T>>(ctx, rows, classes, [&](Wide<T>* scratch, int64_t begin, int64_t end) {
    run(x, t, loss.data<T>(), backprop.data<T>(), scratch, begin, end, classes);
  });
}

template <typename T, typename Label>
void ComputeSparseLoss(KernelContext& ctx) {
  const Tensor& logits = ctx.input(0);
  CheckRows(logits, ctx.input(1), true);
  const int64_t rows = logits.shape().dim(0);
  const int64_t classes = logits.shape().dim(1);
  const Label* labels = ctx.input(1).data<Label>();
  for (int64_t r = 0; r < rows; ++r) {
    if (labels[r] < 0 || static_cast<int64_t>(labels[r]) >= classes) {
      throw InvalidArgumentError(StrCat("[kernels/softmax] Received a label value of ", labels[r],
                                        " which is outside the valid range of [0, ", classes, "); labels[", r, "]"));
    }
  }
  Tensor& loss = ctx.AllocateOutput(0, Shape{rows});
  Tensor& backprop = ctx.ForwardInputOrAllocate(0, 1, logits.shape());
  const T* x = logits.data<T>();
  const auto run = HasFewClasses(classes) ? cpu::Widest<SparseLossBody<T, true, Label>>(true)
                                          : cpu::Widest<SparseLossBody<T, false, Label>>(true);
  ForRows<Wide<T>>(ctx, rows, classes, [&](Wide<T>* scratch, int64_t begin, int64_t end) {
    run(x, labels, loss.data<T>(), backprop.data<T>(), scratch, begin, end, classes);
  });
}

using ComputeFn = void (*)(KernelContext&);

class RowKernel final : public OpKernel {
 public:
  explicit RowKernel(ComputeFn compute) : compute_(compute) {}
  void Compute(KernelContext& ctx) override { compute_(ctx); }

 private:
  const ComputeFn compute_;
};

// Registers a kernel whose function `pick` chooses when it is made.
void RegisterPicked(KernelRegistry& registry, const char* op, ComputeFn (*pick)(const KernelConstruction&)) {
  registry.Register(op, "CPU", [pick](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    return std::make_unique<RowKernel>(pick(c));
  });
}

template <typename Fn>
ComputeFn PickByT(const KernelConstruction& c, const Fn& fn) {
  return cpu::ForFloating(c.attr<DType>("T"), c.node.op_name(), fn);
}

}  // namespace

void RegisterSoftmaxKernels(KernelRegistry& registry) {
  RegisterPicked(registry, "Softmax", [](const KernelConstruction& c) {
    return PickByT(c, [](auto tag) -> ComputeFn { return &ComputeSoftmax<decltype(tag), SoftmaxRow>; });
  });
  RegisterPicked(registry, "LogSoftmax", [](const KernelConstruction& c) {
    return PickByT(c, [](auto tag) -> ComputeFn { return &ComputeSoftmax<decltype(tag), LogSoftmaxRow>; });
  });
  RegisterPicked(registry, "SoftmaxCrossEntropyWithLogits", [](const KernelConstruction& c) {
    return PickByT(c, [](auto tag) -> ComputeFn { return &ComputeDenseLoss<decltype(tag)>; });
  });
  RegisterPicked(registry, "SparseSoftmaxCrossEntropyWithLogits", [](const KernelConstruction& c) {
    const bool wide_labels = c.attr<DType>("Tlabels") == DType::kInt64;
    return PickByT(c, [wide_labels](auto tag) -> ComputeFn {
      using T = decltype(tag);
      return wide_labels ? &ComputeSparseLoss<T, int64_t> : &ComputeSparseLoss<T, int32_t>;
    });
  });
}

}  // namespace cohort
