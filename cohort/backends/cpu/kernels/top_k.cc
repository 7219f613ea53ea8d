// TopKV2: the largest elements of each row. A row is a selection of k positions, and then a sort of these.
#include <algorithm>
#include <memory>
#include <numeric>
#include <type_traits>
#include <vector>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"
#include "cohort/ops/shape_rules.h"

namespace cohort {
namespace {

// Returns whether the element at position a of the row comes before that at b. NaN is larger than every number.
template <typename T>
bool ComesBefore(const T* row, int64_t a, int64_t b) {
  const auto x = static_cast<cpu::Wide<T>>(row[a]), y = static_cast<cpu::Wide<T>>(row[b]);
  if (x > y) return true;
  if (x < y) return false;
  if constexpr (std::is_floating_point_v<cpu::Wide<T>>) {
    if ((x != x) != (y != y)) return x != x;
  }
  return a < b;
}

template <typename T, typename Index>
void TopRows(const T* in, int64_t columns, int64_t k, int64_t begin, int64_t end, T* values, Index* indices) {
  std::vector<int64_t> order(static_cast<size_t>(columns));
  for (int64_t r = begin; r < end; ++r) {
    const T* row = in + r * columns;
    std::iota(order.begin(), order.end(), 0);
    const auto before = [row](int64_t a, int64_t b) { return ComesBefore(row, a, b); };
    const auto last = order.begin() + k;
    if (k < columns && k > 0) std::nth_element(order.begin(), last - 1, order.end(), before);
    std::sort(order.begin(), last, before);
    for (int64_t i = 0; i < k; ++i) {
      const int64_t at = order[static_cast<size_t>(i)];
      values[r * k + i] = row[at];
      indices[r * k + i] = static_cast<Index>(at);
    }
  }
}

void TopK(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const Shape& in = input.shape();
  const int64_t k = ops::IntegerScalar(ctx.input(1), "k");
  if (k < 0) throw InvalidArgumentError(StrCat("k must not be negative; got ", k));
  if (in.rank() == 0 || in.dim(in.rank() - 1) < k) {
    throw InvalidArgumentError(StrCat("input must have at least k = ", k, " columns; got shape ", in));
  }
  const int64_t columns = in.dim(in.rank() - 1);
  const Shape shape = in.Sub(0, in.rank() - 1).Concat(Shape{k});
  Tensor& values = ctx.AllocateOutput(0, shape);
  Tensor& indices = ctx.AllocateOutput(1, shape);
  if (values.num_elements() == 0) return;
  const int64_t rows = input.num_elements() / columns;
  cpu::ForAllNumbers(input.dtype(), "TopKV2", [&]<typename T>(T) {
    const auto run = [&](auto* positions) {
      cpu::ForBlocks(
          rows, ctx.num_threads(),
          [&](int64_t begin, int64_t end) {
            TopRows(input.data<T>(), columns, k, begin, end, values.data<T>(), positions);
          },
          columns * 4);
    };
    if (indices.dtype() == DType::kInt32)
      run(indices.data<int32_t>());
    else
      run(indices.data<int64_t>());
    return 0;
  });
}

}  // namespace

void RegisterTopKKernels(KernelRegistry& registry) { registry.RegisterFn("TopKV2", "CPU", TopK); }

}  // namespace cohort
