// Softmax and its relatives. A group of threads (row_groups.h) computes a row: first the largest logit, then the
// sum of the exponentials, and then the results, for which each thread computes its exponentials again. A thread writes
// only elements that it alone reads, so results may overwrite the logits.
#include <cmath>

#include "cohort/backends/cuda/dialect/limits.h"
#include "cohort/backends/cuda/dialect/report.h"
#include "cohort/backends/cuda/kernels/row_groups.h"
#include "cohort/backends/cuda/kernels/softmax.cu.h"

namespace cohort::cuda {
namespace {

// What the threads of a group know of their row.
template <typename W>
struct RowSums {
  W largest;
  W sum;  // of e^(x - largest)
};

template <typename T>
COHORT_KERNEL RowSums<Wide<T>> SumsOf(const Thread& t, const T* x, const RowPart& part, int64_t classes) {
  using W = Wide<T>;
  RowSums<W> sums{kLowest<W>, 0};
  for (int64_t i = part.first; i < classes; i += part.size) {
    const auto value = static_cast<W>(x[i]);
    sums.largest = value > sums.largest ? value : sums.largest;
  }
  sums.largest = ReduceGroup(t, static_cast<uint32_t>(part.size), sums.largest, JoinMax());
  for (int64_t i = part.first; i < classes; i += part.size) sums.sum += std::exp(static_cast<W>(x[i]) - sums.largest);
  sums.sum = ReduceGroup(t, static_cast<uint32_t>(part.size), sums.sum, JoinSum());
  return sums;
}

template <typename T, bool kLog>
struct SoftmaxKernel {
  static constexpr bool kWaits = true;
  const T* logits;
  T* out;
  int64_t rows;
  int64_t classes;
  uint32_t group;

  COHORT_KERNEL void operator()(const Thread& t) const {
    ForRows(t, rows, group, [&](const RowPart& part) { Row(t, part); });
  }

  COHORT_KERNEL void Row(const Thread& t, const RowPart& part) const {
    using W = Wide<T>;
    const T* x = logits + part.row * classes;
    T* y = out + part.row * classes;
    const RowSums<W> sums = SumsOf(t, x, part, classes);
    const W scale = W(1) / sums.sum;
    const W log_sum = std::log(sums.sum);
    for (int64_t i = part.first; i < classes; i += part.size) {
      const W shifted = static_cast<W>(x[i]) - sums.largest;
      y[i] = static_cast<T>(kLog ? shifted - log_sum : std::exp(shifted) * scale);
    }
  }
};

// loss = sum_i t_i (log sum - (x_i - largest)), where 0 log 0 = 0; gradient = softmax - t.
template <typename T>
struct DenseLossKernel {
  static constexpr bool kWaits = true;
  const T* logits;
  const T* labels;
  T* loss;
  T* gradient;
  int64_t rows;
  int64_t classes;
  uint32_t group;

  COHORT_KERNEL void operator()(const Thread& t) const {
    ForRows(t, rows, group, [&](const RowPart& part) { Row(t, part); });
  }

  COHORT_KERNEL void Row(const Thread& t, const RowPart& part) const {
    using W = Wide<T>;
    const int64_t begin = part.row * classes;
    const RowSums<W> sums = SumsOf(t, logits + begin, part, classes);
    const W scale = W(1) / sums.sum;
    const W log_sum = std::log(sums.sum);
    W total = 0;
    for (int64_t i = begin + part.first; i < begin + classes; i += part.size) {
      const auto label = static_cast<W>(labels[i]);
      const W shifted = static_cast<W>(logits[i]) - sums.largest;
      total += label == W(0) ? W(0) : label * (log_sum - shifted);
      gradient[i] = static_cast<T>(std::exp(shifted) * scale - label);
    }
    total = ReduceGroup(t, group, total, JoinSum());
    if (part.first == 0) loss[part.row] = static_cast<T>(total);
  }
};

template <typename T, typename Label>
struct SparseLossKernel {
  static constexpr bool kWaits = true;
  const T* logits;
  const Label* labels;
  T* loss;
  T* gradient;
  int64_t rows;
  int64_t classes;
  uint32_t group;
  uint64_t* word;
  uint32_t check;

  COHORT_KERNEL void operator()(const Thread& t) const {
    ForRows(t, rows, group, [&](const RowPart& part) { Row(t, part); });
  }

  COHORT_KERNEL void Row(const Thread& t, const RowPart& part) const {
    using W = Wide<T>;
    const T* x = logits + part.row * classes;
    T* g = gradient + part.row * classes;
    const auto label = static_cast<int64_t>(labels[part.row]);
    const RowSums<W> sums = SumsOf(t, x, part, classes);
    const W scale = W(1) / sums.sum;
    for (int64_t i = part.first; i < classes; i += part.size) {
      const W shifted = static_cast<W>(x[i]) - sums.largest;
      if (i == label) loss[part.row] = static_cast<T>(std::log(sums.sum) - shifted);
      g[i] = static_cast<T>(std::exp(shifted) * scale - (i == label ? W(1) : W(0)));
    }
    if (part.first != 0 || (label >= 0 && label < classes)) return;
    loss[part.row] = static_cast<T>(kNan<W>);
    ReportError(word, check, part.row, [this](int64_t p) { return labels[p]; });
  }
};

template <typename T, typename Label>
void SparseLoss(Driver& driver, StreamHandle stream, const LossArgs& args, uint64_t* word, uint32_t check) {
  const RowGroups groups(args.input.rows, args.input.classes);
  Launch(driver, stream, groups.size,
         SparseLossKernel<T, Label>{static_cast<const T*>(args.input.logits), static_cast<const Label*>(args.labels),
                                    static_cast<T*>(args.loss), static_cast<T*>(args.gradient), args.input.rows,
                                    args.input.classes, groups.group, word, check});
}

}  // namespace

void LaunchSoftmax(Driver& driver, StreamHandle stream, ElementType type, bool log, const LogitsArgs& args, void* out) {
  const RowGroups groups(args.rows, args.classes);
  ForFloating(type, "Softmax", [&]<typename T>(T) {
    const auto* in = static_cast<const T*>(args.logits);
    auto* to = static_cast<T*>(out);
    if (log) {
      return Launch(driver, stream, groups.size, SoftmaxKernel<T, true>{in, to, args.rows, args.classes, groups.group});
    }
    Launch(driver, stream, groups.size, SoftmaxKernel<T, false>{in, to, args.rows, args.classes, groups.group});
  });
}

void LaunchDenseLoss(Driver& driver, StreamHandle stream, ElementType type, const LossArgs& args) {
  const RowGroups groups(args.input.rows, args.input.classes);
  ForFloating(type, "SoftmaxCrossEntropyWithLogits", [&]<typename T>(T) {
    Launch(driver, stream, groups.size,
           DenseLossKernel<T>{static_cast<const T*>(args.input.logits), static_cast<const T*>(args.labels),
                              static_cast<T*>(args.loss), static_cast<T*>(args.gradient), args.input.rows,
                              args.input.classes, groups.group});
  });
}

void LaunchSparseLoss(Driver& driver, StreamHandle stream, ElementType type, bool wide_labels, const LossArgs& args,
                      uint64_t* word, uint32_t check) {
  ForFloating(type, "SparseSoftmaxCrossEntropyWithLogits", [&]<typename T>(T) {
    wide_labels ? SparseLoss<T, int64_t>(driver, stream, args, word, check)
                : SparseLoss<T, int32_t>(driver, stream, args, word, check);
  });
}

}  // namespace cohort::cuda
