// BiasAdd, also with an activation, its gradient, L2Loss and InTopK. Sums over many elements have two stages
// (column_sums.h).
#include <type_traits>

#include "cohort/backends/cuda/dialect/bfloat16.h"
#include "cohort/backends/cuda/dialect/pack.h"
#include "cohort/backends/cuda/kernels/column_sums.h"
#include "cohort/backends/cuda/kernels/nn.cu.h"

namespace cohort::cuda {
namespace {

// The sum is rounded to T before the activation, as if BiasAdd and the activation were two kernels. Each thread has
// packs of kPack elements of consecutive channels. For kPack 1 the channels may be in the middle.
template <typename T, typename Function, int kPack, typename Index>
struct BiasAddKernel {
  const T* x;
  const T* bias;
  T* y;
  Index packs;
  Index channels;  // in packs
  Index inner;     // 1 if kPack is not 1

  COHORT_KERNEL void operator()(const Thread& thread) const {
    for (auto i = static_cast<Index>(thread.first()); i < packs; i += static_cast<Index>(thread.step())) {
      const Index channel = i / inner % channels;
      const Pack<T, kPack> values = LoadPack<kPack>(x, i);
      const Pack<T, kPack> shifts = LoadPack<kPack>(bias, channel);
      Pack<T, kPack> results;
      for (int k = 0; k < kPack; ++k) {
        const T sum(static_cast<Wide<T>>(values.at[k]) + static_cast<Wide<T>>(shifts.at[k]));
        results.at[k] = T(Function::Apply(static_cast<Wide<T>>(sum)));
      }
      StorePack<kPack>(y, i, results);
    }
  }
};

template <typename T, typename Function, int kPack, typename Index>
void BiasAdd(Driver& driver, StreamHandle stream, const ChannelView& view, const T* x, const T* bias, T* y) {
  const int64_t packs = view.size() / kPack;
  Launch(driver, stream, SizeFor(packs),
         BiasAddKernel<T, Function, kPack, Index>{x, bias, y, static_cast<Index>(packs),
                                                  static_cast<Index>(view.channels / kPack),
                                                  static_cast<Index>(view.inner)});
}

template <typename T>
struct ChannelSource {
  const T* x;
  int64_t channels;
  int64_t inner;
  COHORT_KERNEL void Add(int64_t row, int64_t channel, Wide<T> (&sums)[1]) const {
    const int64_t at = inner == 1 ? row * channels + channel : (row / inner * channels + channel) * inner + row % inner;
    sums[0] += static_cast<Wide<T>>(x[at]);
  }
};

template <typename T>
struct SquareSource {
  const T* x;
  COHORT_KERNEL void Add(int64_t row, int64_t, Wide<T> (&sums)[1]) const {
    const auto value = static_cast<Wide<T>>(x[row]);
    sums[0] += value * value;
  }
};

template <typename Label>
struct InTopKKernel {
  int64_t rows;
  int64_t classes;
  const float* predictions;
  const Label* targets;
  const Label* k;
  bool* in_top;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    for (int64_t row = thread.first(); row < rows; row += thread.step()) {
      in_top[row] = IsInTopK(predictions + row * classes, static_cast<int64_t>(targets[row]), static_cast<int64_t>(*k));
    }
  }

  COHORT_KERNEL static bool IsFinite(float x) { return x - x == 0.0f; }

  COHORT_KERNEL bool IsInTopK(const float* row, int64_t target, int64_t most) const {
    if (target < 0 || target >= classes || !IsFinite(row[target])) return false;
    int64_t above = 0;
    for (int64_t c = 0; c < classes; ++c) {
      if (!IsFinite(row[c])) return false;
      above += row[c] > row[target] ? 1 : 0;
    }
    return above < most;
  }
};

ColumnSums ChannelSums(const ChannelView& view) { return {view.outer * view.inner, view.channels}; }

size_t SumsBytes(ElementType type, const ColumnSums& sums) {
  return type == ElementType::kFloat64 ? ColumnSumsBytes<double>(sums) : ColumnSumsBytes<float>(sums);
}

}  // namespace

void LaunchBiasAdd(Driver& driver, StreamHandle stream, ElementType type, Activation activation,
                   const ChannelView& view, const void* x, const void* bias, void* y) {
  constexpr int64_t kMost32 = int64_t{1} << 31;  // a loop's step may be added once more
  ForFloating(type, "BiasAdd", [&]<typename T>(T) {
    ForActivation(activation, [&]<typename Function>(Function) {
      const T* from = static_cast<const T*>(x);
      const T* shift = static_cast<const T*>(bias);
      T* to = static_cast<T*>(y);
      constexpr int kPack = kPackBytes / static_cast<int>(sizeof(T));
      const bool packs = view.inner == 1 && view.channels % kPack == 0 && IsAligned<T, kPack>(from) &&
                         IsAligned<T, kPack>(shift) && IsAligned<T, kPack>(to);
      const bool small = view.size() < kMost32;
      if (packs && small) return BiasAdd<T, Function, kPack, uint32_t>(driver, stream, view, from, shift, to);
      if (small) return BiasAdd<T, Function, 1, uint32_t>(driver, stream, view, from, shift, to);
      BiasAdd<T, Function, 1, int64_t>(driver, stream, view, from, shift, to);
    });
  });
}

size_t BiasAddGradBytes(ElementType type, const ChannelView& view) { return SumsBytes(type, ChannelSums(view)); }

void LaunchBiasAddGrad(Driver& driver, StreamHandle stream, ElementType type, const ChannelView& view, const void* x,
                       void* sums, void* scratch) {
  ForFloating(type, "BiasAddGrad", [&]<typename T>(T) {
    SumColumns<Wide<T>, 1>(driver, stream, ChannelSums(view),
                           ChannelSource<T>{static_cast<const T*>(x), view.channels, view.inner},
                           StoreSums<T>{static_cast<T*>(sums), 1.0}, scratch);
  });
}

size_t L2LossBytes(ElementType type, int64_t n) { return SumsBytes(type, {n, 1}); }

void LaunchL2Loss(Driver& driver, StreamHandle stream, ElementType type, int64_t n, const void* x, void* loss,
                  void* scratch) {
  ForFloating(type, "L2Loss", [&]<typename T>(T) {
    SumColumns<Wide<T>, 1>(driver, stream, ColumnSums(n, 1), SquareSource<T>{static_cast<const T*>(x)},
                           StoreSums<T>{static_cast<T*>(loss), 0.5}, scratch);
  });
}

void LaunchInTopK(Driver& driver, StreamHandle stream, ElementType type, int64_t rows, int64_t classes,
                  const float* predictions, const void* targets, const void* k, bool* in_top) {
  const auto launch = [&]<typename Label>(Label) {
    Launch(driver, stream, SizeFor(rows),
           InTopKKernel<Label>{rows, classes, predictions, static_cast<const Label*>(targets),
                               static_cast<const Label*>(k), in_top});
  };
  type == ElementType::kInt64 ? launch(int64_t()) : launch(int32_t());
}

}  // namespace cohort::cuda
