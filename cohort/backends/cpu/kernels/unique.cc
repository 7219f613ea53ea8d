#include "cohort/backends/cpu/kernels/unique.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/core/error.h"
#include "cohort/device/kernel.h"

namespace cohort::cpu {
namespace {

// Numbers different values by their first appearance. Open addressing over positions in `values`.
template <typename T>
class ValueTable {
 public:
  explicit ValueTable(int64_t most)
      : slots_(std::bit_ceil(static_cast<size_t>(2 * most + 2)), kEmpty), mask_(slots_.size() - 1) {}

  int64_t NumberOf(const T& value) {
    size_t at = Hash(value) & mask_;
    while (slots_[at] != kEmpty) {
      if (values_[static_cast<size_t>(slots_[at])] == value) return slots_[at];
      at = (at + 1) & mask_;
    }
    slots_[at] = static_cast<int64_t>(values_.size());
    values_.push_back(value);
    return slots_[at];
  }
  const std::vector<T>& values() const { return values_; }

 private:
  static constexpr int64_t kEmpty = -1;

  static size_t Hash(const T& value) {
    size_t hash = 0;
    if constexpr (std::is_same_v<T, bfloat16>)
      hash = std::hash<float>()(static_cast<float>(value));
    else
      hash = std::hash<T>()(value);
    return (hash * 0x9e3779b97f4a7c15u) >> 17;  // std::hash of integers is the integer
  }

  std::vector<int64_t> slots_;
  std::vector<T> values_;
  size_t mask_;
};

void PutIndex(Tensor& out, int64_t at, int64_t value) {
  if (out.dtype() == DType::kInt32)
    out.data<int32_t>()[at] = static_cast<int32_t>(value);
  else
    out.data<int64_t>()[at] = value;
}

template <typename T>
void FindUnique(KernelContext& ctx, const Tensor& x) {
  const int64_t n = x.num_elements();
  const T* in = x.data<T>();
  Tensor& idx = ctx.AllocateOutput(1, x.shape());
  ValueTable<T> table(n);
  std::vector<int64_t> counts;
  const bool counting = ctx.num_outputs() > 2;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t number = table.NumberOf(in[i]);
    PutIndex(idx, i, number);
    if (!counting) continue;
    if (number == static_cast<int64_t>(counts.size())) counts.push_back(0);
    ++counts[static_cast<size_t>(number)];
  }
  const int64_t found = static_cast<int64_t>(table.values().size());
  Tensor& y = ctx.AllocateOutput(0, Shape{found});
  std::copy(table.values().begin(), table.values().end(), y.data<T>());
  if (!counting) return;
  Tensor& count = ctx.AllocateOutput(2, Shape{found});
  for (int64_t i = 0; i < found; ++i) PutIndex(count, i, counts[static_cast<size_t>(i)]);
}

void Unique(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.shape().rank() != 1) throw InvalidArgumentError(StrCat("unique expects a 1D vector; got shape ", x.shape()));
  if (x.dtype() == DType::kString) return FindUnique<std::string>(ctx, x);
  if (x.dtype() == DType::kBool) {
    throw UnimplementedError("[backends/cpu] Unique is there for numbers and strings; got bool");
  }
  ForAllNumbers(x.dtype(), "Unique", [&]<typename T>(T) {
    FindUnique<T>(ctx, x);
    return 0;
  });
}

}  // namespace

void RegisterUniqueKernels(KernelRegistry& registry) {
  registry.RegisterFn("Unique", "CPU", Unique);
  registry.RegisterFn("UniqueWithCounts", "CPU", Unique);
}

}  // namespace cohort::cpu
