// Batch normalization and its gradient. Sums over the points have two stages (column_sums.h). To lose little precision,
// the statistics are those of the differences to the first point of the channel.
#include <cmath>

#include "cohort/backends/cuda/dialect/pack.h"
#include "cohort/backends/cuda/kernels/batch_norm.cu.h"
#include "cohort/backends/cuda/kernels/column_sums.h"

namespace cohort::cuda {
namespace {

template <typename T>
struct DifferenceSource {
  const T* x;
  int64_t channels;
  COHORT_KERNEL void Add(int64_t point, int64_t channel, float (&sums)[2]) const {
    const float difference = static_cast<float>(x[point * channels + channel]) - static_cast<float>(x[channel]);
    sums[0] += difference;
    sums[1] += difference * difference;
  }
};

template <typename T>
struct StoreStatistics {
  const T* x;
  double points;
  BatchStatistics to;
  COHORT_KERNEL void Store(int64_t channel, const double (&sums)[2]) const {
    const double shift = sums[0] / points;
    const double spread = sums[1] / points - shift * shift;
    const auto mean = static_cast<float>(static_cast<double>(static_cast<float>(x[channel])) + shift);
    const auto variance = static_cast<float>(spread < 0 ? 0.0 : spread);  // NaN stays
    to.mean[channel] = mean;
    to.variance[channel] = variance;
    to.reported_mean[channel] = Mixed(to.old_mean, channel, mean);
    to.reported_variance[channel] = Mixed(to.old_variance, channel, variance * to.correction);
  }
  COHORT_KERNEL float Mixed(const float* old, int64_t channel, float value) const {
    return old == nullptr ? value : (1.0f - to.factor) * old[channel] + to.factor * value;
  }
};

COHORT_KERNEL float InverseDeviation(const Normalization& n, int64_t channel) {
  return 1.0f / std::sqrt(n.variance[channel] + n.epsilon);
}

// A function of the elements of one channel: first * (x - shift) + second * dy + third.
struct Factors {
  float shift;
  float first;
  float second;
  float third;
};

struct NormalizeFactors {
  Normalization n;
  COHORT_KERNEL Factors Of(int64_t channel) const {
    const float factor = n.scale[channel] * InverseDeviation(n, channel);
    return {n.mean[channel], factor, 0.0f, n.offset[channel]};
  }
};

// dx = scale / deviation * (dy - d_offset / points - (x - mean) / deviation * d_scale / points); without the last two
// terms if mean and variance do not depend on x.
struct GradientFactors {
  Normalization n;
  const float* d_scale;
  const float* d_offset;
  float points;
  COHORT_KERNEL Factors Of(int64_t channel) const {
    const float inverse = InverseDeviation(n, channel);
    const float factor = n.scale[channel] * inverse;
    if (d_scale == nullptr) return {0.0f, 0.0f, factor, 0.0f};
    return {n.mean[channel], -factor * inverse * d_scale[channel] / points, factor,
            -factor * d_offset[channel] / points};
  }
};

// A thread has the same channels (a pack of them) in several points, so it computes their factors once.
template <typename T, typename Source, int kPack, bool kTwo>
struct ApplyFactorsKernel {
  ColumnSums share_sizes;  // its columns are packs
  Source source;
  const T* x;
  const T* dy;  // read if kTwo
  T* out;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    const ColumnShare share(thread, share_sizes);
    if (!share.works) return;
    Factors factors[kPack];
    for (int k = 0; k < kPack; ++k) factors[k] = source.Of(share.column * kPack + k);
    for (int64_t point = share.begin; point < share.end; point += share.step) {
      const int64_t at = point * share_sizes.columns + share.column;
      const Pack<T, kPack> values = LoadPack<kPack>(x, at);
      Pack<T, kPack> gradients = values;
      if constexpr (kTwo) gradients = LoadPack<kPack>(dy, at);
      Pack<T, kPack> results;
      for (int k = 0; k < kPack; ++k) {
        float result = factors[k].third;
        // If x does not matter, it may be infinite.
        if (factors[k].first != 0.0f)
          result += factors[k].first * (static_cast<float>(values.at[k]) - factors[k].shift);
        if constexpr (kTwo) result += factors[k].second * static_cast<float>(gradients.at[k]);
        results.at[k] = T(result);
      }
      StorePack<kPack>(out, at, results);
    }
  }
};

template <typename T>
struct GradientSource {
  const T* x;
  const T* dy;
  const float* mean;
  int64_t channels;
  COHORT_KERNEL void Add(int64_t point, int64_t channel, float (&sums)[2]) const {
    const int64_t at = point * channels + channel;
    const auto gradient = static_cast<float>(dy[at]);
    sums[0] += gradient * (static_cast<float>(x[at]) - mean[channel]);
    sums[1] += gradient;
  }
};

struct StoreGradients {
  Normalization n;
  float* d_scale;
  float* d_offset;
  COHORT_KERNEL void Store(int64_t channel, const double (&sums)[2]) const {
    d_scale[channel] = static_cast<float>(sums[0] * static_cast<double>(InverseDeviation(n, channel)));
    d_offset[channel] = static_cast<float>(sums[1]);
  }
};

// Calls fn with a T of the type.
template <typename Fn>
void ForBatches(ElementType type, const Fn& fn) {
  type == ElementType::kBfloat16 ? fn(BFloat16()) : fn(float());
}

template <typename T, bool kTwo, int kPack, typename Source>
void LaunchFactors(Driver& driver, StreamHandle stream, const BatchSizes& sizes, const Source& source, const T* x,
                   const T* dy, T* out) {
  constexpr int64_t kPointsOfThread = 16;
  const ColumnSums share(sizes.points, sizes.channels / kPack, kPointsOfThread);
  Launch(driver, stream, FirstStageSize(share), ApplyFactorsKernel<T, Source, kPack, kTwo>{share, source, x, dy, out});
}

template <bool kTwo, typename Source>
void ApplyFactors(Driver& driver, StreamHandle stream, ElementType type, const BatchSizes& sizes, const Source& source,
                  const void* x, const void* dy, void* out) {
  ForBatches(type, [&]<typename T>(T) {
    constexpr int kPack = 4;
    const T* from = static_cast<const T*>(x);
    const T* gradients = static_cast<const T*>(dy);
    T* to = static_cast<T*>(out);
    const bool packs = sizes.channels % kPack == 0 && IsAligned<T, kPack>(from) && IsAligned<T, kPack>(gradients) &&
                       IsAligned<T, kPack>(to);
    if (packs) return LaunchFactors<T, kTwo, kPack>(driver, stream, sizes, source, from, gradients, to);
    LaunchFactors<T, kTwo, 1>(driver, stream, sizes, source, from, gradients, to);
  });
}

}  // namespace

size_t BatchNormBytes(const BatchSizes& sizes) {
  return ColumnSumsBytes<float>(ColumnSums(sizes.points, sizes.channels), 2);
}

void LaunchBatchStatistics(Driver& driver, StreamHandle stream, ElementType type, const BatchSizes& sizes,
                           const void* x, const BatchStatistics& statistics, void* scratch) {
  ForBatches(type, [&]<typename T>(T) {
    const T* from = static_cast<const T*>(x);
    SumColumns<float, 2>(driver, stream, ColumnSums(sizes.points, sizes.channels),
                         DifferenceSource<T>{from, sizes.channels},
                         StoreStatistics<T>{from, static_cast<double>(sizes.points), statistics}, scratch);
  });
}

void LaunchNormalize(Driver& driver, StreamHandle stream, ElementType type, const BatchSizes& sizes, const void* x,
                     const Normalization& normalization, void* y) {
  ApplyFactors<false>(driver, stream, type, sizes, NormalizeFactors{normalization}, x, nullptr, y);
}

void LaunchNormalizationSums(Driver& driver, StreamHandle stream, ElementType type, const BatchSizes& sizes,
                             const void* x, const void* dy, const Normalization& normalization, float* d_scale,
                             float* d_offset, void* scratch) {
  ForBatches(type, [&]<typename T>(T) {
    SumColumns<float, 2>(
        driver, stream, ColumnSums(sizes.points, sizes.channels),
        GradientSource<T>{static_cast<const T*>(x), static_cast<const T*>(dy), normalization.mean, sizes.channels},
        StoreGradients{normalization, d_scale, d_offset}, scratch);
  });
}

void LaunchNormalizationGradient(Driver& driver, StreamHandle stream, ElementType type, const BatchSizes& sizes,
                                 const void* x, const void* dy, const Normalization& normalization,
                                 const float* d_scale, const float* d_offset, void* dx) {
  ApplyFactors<true>(driver, stream, type, sizes,
                     GradientFactors{normalization, d_scale, d_offset, static_cast<float>(sizes.points)}, x, dy, dx);
}

}  // namespace cohort::cuda
