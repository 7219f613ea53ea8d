#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "cohort/device/kernel.h"
#include "cohort/kernels/cpu/exponential.h"
#include "cohort/kernels/cpu/loops.h"
#include "cohort/kernels/cpu/simd.h"
#include "cohort/kernels/register.h"

namespace cohort {
namespace {

using cpu::Wide;

constexpr int64_t kCostOfElement = 12;  // in simple operations, for ForBlocks

template <typename T>
COHORT_INLINE Wide<T> Largest(const T* row, int64_t n) {
  Wide<T> largest = -std::numeric_limits<Wide<T>>::infinity();
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<Wide<T>>(row[i]);
    largest = x > largest ? x : largest;
  }
  return largest;
}

// scratch[i] = e^(row[i] - largest); returns their sum. `scratch` may be `row`.
template <typename T>
COHORT_INLINE Wide<T> Exponentials(const T* row, Wide<T> largest, Wide<T>* scratch, int64_t n) {
  Wide<T> sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const Wide<T> e = cpu::Exp(static_cast<Wide<T>>(row[i]) - largest);
    scratch[i] = e;
    sum += e;
  }
  return sum;
}

// All bodies below work on rows [begin, end) of `n` classes; `scratch` has room for n.

template <typename T>
struct SoftmaxBody {
  static COHORT_INLINE void Run(const T* x, T* y, Wide<T>* scratch, int64_t begin, int64_t end, int64_t n) {
    for (int64_t r = begin; r < end; ++r) {
      const Wide<T> scale = 1 / Exponentials(x + r * n, Largest(x + r * n, n), scratch, n);
      T* out = y + r * n;
  #pragma omp simd
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(scratch[i] * scale);
    }
  }
};

template <typename T>
struct LogSoftmaxBody {
  static COHORT_INLINE void Run(const T* x, T* y, Wide<T>* scratch, int64_t begin, int64_t end, int64_t n) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * n;
      const Wide<T> largest = Largest(row, n);
      const Wide<T> log_sum = std::log(Exponentials(row, largest, scratch, n));
      T* out = y + r * n;
  #pragma omp simd
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(static_cast<Wide<T>>(row[i]) - largest - log_sum);
    }
  }
};

// loss = sum_i t_i (log sum - (x_i - largest)); backprop = softmax - t.
template <typename T>
struct DenseLossBody {
  static COHORT_INLINE void Run(const T* x, const T* labels, T* loss, T* backprop, Wide<T>* scratch, int64_t begin, int64_t end,
                     int64_t n) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * n;
      const T* target = labels + r * n;
      T* out = backprop + r * n;
      const Wide<T> largest = Largest(row, n);
      const Wide<T> sum = Exponentials(row, largest, scratch, n);
      const Wide<T> log_sum = std::log(sum);
      const Wide<T> scale = 1 / sum;
      Wide<T> total = 0;
      for (int64_t i = 0; i < n; ++i) {
        const auto t = static_cast<Wide<T>>(target[i]);
        const Wide<T> term = t * (log_sum - (static_cast<Wide<T>>(row[i]) - largest));
        total += t == 0 ? Wide<T>(0) : term;  // 0 log 0 = 0
        out[i] = static_cast<T>(scratch[i] * scale - t);
      }
      loss[r] = static_cast<T>(total);
    }
  }
};

template <typename T, typename Label>
struct SparseLossBody {
  static COHORT_INLINE void Run(const T* x, const Label* labels, T* loss, T* backprop, Wide<T>* scratch, int64_t begin, int64_t end,
                      int64_t n) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * n;
      T* out = backprop + r * n;
      const auto label = static_cast<int64_t>(labels[r]);
      const auto chosen = static_cast<Wide<T>>(row[label]);
      const Wide<T> largest = Largest(row, n);
      const Wide<T> sum = Exponentials(row, largest, scratch, n);
      const Wide<T> scale = 1 / sum;
      const Wide<T> of_label = scratch[label] * scale - 1;
  #pragma omp simd
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(scratch[i] * scale);
      out[label] = static_cast<T>(of_label);
      loss[r] = static_cast<T>(std::log(sum) - (chosen - largest));
    }
  }
};

// body(scratch, begin, end) over blocks of rows; `scratch` holds one row.
template <typename W, typename Body>
void ForRows(KernelContext& ctx, int64_t rows, int64_t classes, const Body& body) {
  cpu::ForBlocks(
      rows, ctx.num_threads(),
      [&](int64_t begin, int64_t end) {
        constexpr int64_t kOnStack = 256;
        W on_stack[kOnStack];
        std::vector<W> on_heap(static_cast<size_t>(classes > kOnStack ? classes : 0));
        body(classes > kOnStack ? on_heap.data() : on_stack, begin, end);
      },
      classes * kCostOfElement);
}

template <typename T, bool kLog>
void ComputeSoftmax(KernelContext& ctx) {
  const Tensor& logits = ctx.input(0);
  const Shape& shape = logits.shape();
  if (shape.rank() < 1) throw InvalidArgumentError("[kernels/softmax] expected logits of rank 1 or more; got a scalar");
  const int64_t classes = shape.dim(shape.rank() - 1);
  const int64_t rows = classes == 0 ? 0 : logits.num_elements() / classes;
  Tensor& out = ctx.ForwardInputOrAllocate(0, 0, shape);
  const T* x = logits.data<T>();
  T* y = out.data<T>();
  const auto run = cpu::Widest<std::conditional_t<kLog, LogSoftmaxBody<T>, SoftmaxBody<T>>>(true);
  ForRows<Wide<T>>(ctx, rows, classes, [&](Wide<T>* scratch, int64_t begin, int64_t end) {
    run(x, y, scratch, begin, end, classes);
  });
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
  const T* x = logits.data<T>();
  const T* t = ctx.input(1).data<T>();
  const auto run = cpu::Widest<DenseLossBody<T>>(true);
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
  const auto run = cpu::Widest<SparseLossBody<T, Label>>(true);
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
    return PickByT(c, [](auto tag) -> ComputeFn { return &ComputeSoftmax<decltype(tag), false>; });
  });
  RegisterPicked(registry, "LogSoftmax", [](const KernelConstruction& c) {
    return PickByT(c, [](auto tag) -> ComputeFn { return &ComputeSoftmax<decltype(tag), true>; });
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
