#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/cpu/kernels/simd.h"
#include "cohort/backends/cpu/kernels/wrapping.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

// Dimensions of a row: those of `data` after those of `ids`, which must agree with its first ones.
Shape RowShape(const Tensor& data, const Tensor& ids, const char* what) {
  const int rank = ids.shape().rank();
  if (rank > data.shape().rank() || data.shape().Sub(0, rank) != ids.shape()) {
    throw InvalidArgumentError(
        StrCat("data.shape = ", data.shape(), " does not start with ", what, ".shape = ", ids.shape()));
  }
  return data.shape().Sub(rank, data.shape().rank());
}

template <typename T>
struct AddRowBody {
  static COHORT_INLINE void Run(cpu::Wide<T>* sum, const T* row, int64_t n) {
    using W = cpu::Wide<T>;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) sum[i] = cpu::Wrapping<W>::Add(sum[i], static_cast<W>(row[i]));
  }
};

template <typename T, typename Index>
class UnsortedSegmentSumKernel final : public OpKernel {
 public:
  void Compute(KernelContext& ctx) override {
    const Tensor& data = ctx.input(0);
    const Tensor& ids = ctx.input(1);
    const int64_t segments = ops::IntegerScalar(ctx.input(2), "num_segments");
    if (segments < 0) throw InvalidArgumentError(StrCat("num_segments must be non-negative, got ", segments));
    const Shape row = RowShape(data, ids, "segment_ids");
    Tensor& out = ctx.AllocateOutput(0, Shape{segments}.Concat(row));
    Tensor sums = std::is_same_v<W, T> ? out : ctx.AllocateTemp(kDTypeOf<W>, out.shape());
    W* to = sums.data<W>();
    std::fill(to, to + sums.num_elements(), W(0));
    const int64_t n = row.num_elements();
    for (int64_t i = 0; i < ids.num_elements(); ++i) {
      const Index id = ids.data<Index>()[i];
      if (id >= segments) {
        throw InvalidArgumentError(StrCat("segment_ids[", i, "] = ", id, " is out of range [0, ", segments,
                                          "); segment_ids have shape ", ids.shape()));
      }
      if (id >= 0) add_(to + id * n, data.data<T>() + i * n, n);
    }
    if constexpr (!std::is_same_v<W, T>) {
      for (int64_t i = 0; i < out.num_elements(); ++i) out.data<T>()[i] = static_cast<T>(to[i]);
    }
  }

 private:
  using W = cpu::Wide<T>;
  void (*add_)(W*, const T*, int64_t) = cpu::Widest<AddRowBody<T>>();
};

std::unique_ptr<OpKernel> MakeUnsortedSegmentSum(const KernelConstruction& c) {
  const bool narrow = c.node.input(1).dtype() == DType::kInt32;
  return cpu::ForAllNumbers(c.node.input(0).dtype(), c.node.op_name(), [&]<typename T>(T) -> std::unique_ptr<OpKernel> {
    if (narrow) return std::make_unique<UnsortedSegmentSumKernel<T, int32_t>>();
    return std::make_unique<UnsortedSegmentSumKernel<T, int64_t>>();
  });
}

// Returns the number of segments: the last id + 1. Throws InvalidArgumentError unless the ids are a vector, ascend from
// 0 on, and are below 2^48.
template <typename Index>
int64_t CountSegments(const Tensor& ids) {
  constexpr int64_t kMaxSegments = int64_t{1} << 48;
  if (ids.shape().rank() != 1) {
    throw InvalidArgumentError(StrCat("expected segment_ids of rank 1; got the shape ", ids.shape()));
  }
  Index last = 0;
  for (int64_t i = 0; i < ids.num_elements(); ++i) {
    const Index id = ids.data<Index>()[i];
    if (id < last || int64_t{id} >= kMaxSegments) {
      throw InvalidArgumentError(StrCat("expected segment_ids that ascend from 0 on, below 2^48; got segment_ids[", i,
                                        "] = ", id, " after ", last));
    }
    last = id;
  }
  return ids.num_elements() == 0 ? 0 : int64_t{last} + 1;
}

template <typename T, typename Index, bool kMean>
void SortedSegments(KernelContext& ctx) {
  using W = cpu::Wide<T>;
  const Tensor& data = ctx.input(0);
  const Tensor& ids = ctx.input(1);
  const Shape row = RowShape(data, ids, "segment_ids");
  const int64_t segments = CountSegments<Index>(ids), n = row.num_elements(), rows = ids.num_elements();
  Tensor& out = ctx.AllocateOutput(0, Shape{segments}.Concat(row));
  T* to = out.data<T>();
  std::fill(to, to + out.num_elements(), T(0));
  std::vector<W> sum(static_cast<size_t>(n));
  for (int64_t i = 0; i < rows;) {
    const Index id = ids.data<Index>()[i];
    int64_t end = i;
    std::fill(sum.begin(), sum.end(), W(0));
    for (; end < rows && ids.data<Index>()[end] == id; ++end) {
      AddRowBody<T>::Run(sum.data(), data.data<T>() + end * n, n);
    }
    for (int64_t c = 0; c < n; ++c) {
      W& value = sum[static_cast<size_t>(c)];
      if constexpr (kMean) value /= static_cast<W>(end - i);
      to[id * n + c] = static_cast<T>(value);
    }
    i = end;
  }
}

void SegmentSum(KernelContext& ctx) {
  const bool narrow = ctx.input(1).dtype() == DType::kInt32;
  cpu::ForAllNumbers(ctx.input(0).dtype(), "SegmentSum", [&]<typename T>(T) {
    narrow ? SortedSegments<T, int32_t, false>(ctx) : SortedSegments<T, int64_t, false>(ctx);
    return 0;
  });
}

void SegmentMean(KernelContext& ctx) {
  const bool narrow = ctx.input(1).dtype() == DType::kInt32;
  cpu::ForFloating(ctx.input(0).dtype(), "SegmentMean", [&]<typename T>(T) {
    narrow ? SortedSegments<T, int32_t, true>(ctx) : SortedSegments<T, int64_t, true>(ctx);
    return 0;
  });
}

void DynamicPartition(KernelContext& ctx) {
  const Tensor& data = ctx.input(0);
  const Tensor& partitions = ctx.input(1);
  const Shape row = RowShape(data, partitions, "partitions");
  const int count = ctx.num_outputs();
  const int32_t* numbers = partitions.data<int32_t>();
  std::vector<int64_t> sizes(static_cast<size_t>(count), 0);
  for (int64_t i = 0; i < partitions.num_elements(); ++i) {
    if (numbers[i] < 0 || numbers[i] >= count) {
      throw InvalidArgumentError(StrCat("partitions[", i, "] = ", numbers[i], " is not in [0, ", count,
                                        "); partitions have shape ", partitions.shape()));
    }
    ++sizes[static_cast<size_t>(numbers[i])];
  }
  cpu::ForElements(data.dtype(), "DynamicPartition", [&]<typename T>(T) {
    std::vector<T*> to;
    to.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      to.push_back(static_cast<T*>(ctx.AllocateOutput(i, Shape{sizes[static_cast<size_t>(i)]}.Concat(row)).raw_data()));
    }
    const T* from = static_cast<const T*>(data.raw_data());
    const int64_t n = row.num_elements();
    for (int64_t i = 0; i < partitions.num_elements(); ++i) {
      T*& place = to[static_cast<size_t>(numbers[i])];
      place = std::copy(from + i * n, from + (i + 1) * n, place);
    }
    return 0;
  });
}

void DynamicStitch(KernelContext& ctx) {
  const int count = ctx.num_inputs() / 2;
  const Shape row = RowShape(ctx.input(count), ctx.input(0), "indices[0]");
  int64_t rows = 0;
  for (int m = 0; m < count; ++m) {
    if (RowShape(ctx.input(count + m), ctx.input(m), "indices") != row) {
      throw InvalidArgumentError(StrCat("rows of data[", m, "] of shape ", ctx.input(count + m).shape(),
                                        " differ from those of data[0] of shape ", ctx.input(count).shape()));
    }
    for (const int32_t index : ctx.input(m).values<int32_t>()) {
      if (index < 0) throw InvalidArgumentError(StrCat("indices[", m, "] holds the negative index ", index));
      rows = std::max<int64_t>(rows, int64_t{index} + 1);
    }
  }
  Tensor& out = ctx.AllocateOutput(0, Shape{rows}.Concat(row));
  const int64_t n = row.num_elements();
  cpu::ForElements(out.dtype(), "DynamicStitch", [&]<typename T>(T) {
    T* to = static_cast<T*>(out.raw_data());
    std::fill(to, to + out.num_elements(), T());
    for (int m = 0; m < count; ++m) {
      const T* from = static_cast<const T*>(ctx.input(count + m).raw_data());
      for (const int32_t index : ctx.input(m).values<int32_t>()) {
        std::copy(from, from + n, to + index * n);
        from += n;
      }
    }
    return 0;
  });
}

}  // namespace

void RegisterPartitionKernels(KernelRegistry& registry) {
  registry.Register("UnsortedSegmentSum", "CPU", MakeUnsortedSegmentSum);
  registry.RegisterFn("SegmentSum", "CPU", SegmentSum);
  registry.RegisterFn("SegmentMean", "CPU", SegmentMean);
  registry.RegisterFn("DynamicPartition", "CPU", DynamicPartition);
  registry.RegisterFn("DynamicStitch", "CPU", DynamicStitch);
}

}  // namespace cohort
