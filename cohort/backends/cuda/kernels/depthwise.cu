// Convolutions with filters of one input channel. Memory bounds them, so neighbouring threads have neighbouring
// channels, and a thread has several of them (a pack) and several neighbouring columns (a strip). Elements are computed
// in float32. The filter's gradient is summed in two stages (column_sums.h).
#include <string>
#include <type_traits>

#include "cohort/backends/cuda/dialect/pack.h"
#include "cohort/backends/cuda/kernels/activated.h"
#include "cohort/backends/cuda/kernels/column_sums.h"
#include "cohort/backends/cuda/kernels/depthwise.cu.h"

namespace cohort::cuda {
namespace {

constexpr int kStrip = 4;  // columns of a thread

// How the output channels of a pack find their input channels.
enum class Channels {
  kOwn,     // each has its own: the multiplier is 1
  kShared,  // all have one: the multiplier is a multiple of the pack
};

// One item of work: a strip of columns of one row of one image, for one pack of channels.
struct Item {
  int64_t image;
  int64_t row;
  int64_t column;  // the first of the strip
  int64_t pack;

  COHORT_KERNEL Item(uint32_t number, uint32_t packs, uint32_t strips, uint32_t rows) {
    pack = number % packs;
    uint32_t rest = number / packs;
    column = static_cast<int64_t>(rest % strips) * kStrip;
    rest /= strips;
    row = rest % rows;
    image = rest / rows;
  }
};

// An image, and the activation of its elements.
template <typename T>
struct Image {
  const T* x;
  Activation activation;

  // Gives kPack channels of one point, as float; zeros if the point is outside. kShared loads one channel.
  template <Channels kChannels, int kPack>
  COHORT_KERNEL void Load(const DepthwiseSizes& s, bool inside, int64_t point, int64_t first,
                          float (&values)[kPack]) const {
    for (int k = 0; k < kPack; ++k) values[k] = 0.0f;
    if (!inside) return;
    if constexpr (kChannels == Channels::kShared) {
      const auto value = static_cast<float>(Activated(activation, x[point * s.channels + first / s.multiplier]));
      for (int k = 0; k < kPack; ++k) values[k] = value;
    } else {
      const Pack<T, kPack> loaded = LoadPack<kPack>(x + point * s.channels + first, 0);
      for (int k = 0; k < kPack; ++k) values[k] = static_cast<float>(Activated(activation, loaded.at[k]));
    }
  }
};

// What a launch of ForwardKernel reads and writes.
template <typename T>
struct ForwardPlaces {
  bool flipped;
  Image<T> image;
  const T* filter;
  const T* bias;
  Activation activation;
  AppliedGradient applied;
  T* y;
};

// The output, or, with `p.flipped` and strides of 1, the gradient by the input: it is a convolution of dy with the
// filter turned by half a turn. If kColumns is not 0, the filter has so many columns, and strides and dilations of 1
// along them: then each point is loaded once for all columns of the filter.
template <typename T, Channels kChannels, int kPack, int kColumns>
struct ForwardKernel {
  DepthwiseSizes s;
  uint32_t items;
  uint32_t packs;
  uint32_t strips;
  ForwardPlaces<T> p;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    for (int64_t i = thread.first(); i < items; i += thread.step()) {
      const Item item(static_cast<uint32_t>(i), packs, strips, static_cast<uint32_t>(s.out[0]));
      float sums[kStrip][kPack] = {};
      for (int64_t a = 0; a < s.filter[0]; ++a) {
        const int64_t row = item.row * s.strides[0] - s.before[0] + a * s.dilations[0];
        if (row < 0 || row >= s.in[0]) continue;
        const int64_t filter_row = p.flipped ? s.filter[0] - 1 - a : a;
        const int64_t first_point = (item.image * s.in[0] + row) * s.in[1];
        if constexpr (kColumns > 0) {
          AddRowAtOnce(item, first_point, filter_row, sums);
        } else {
          AddRow(item, first_point, filter_row, sums);
        }
      }
      Write(item, sums);
    }
  }

 private:
  COHORT_KERNEL void AddRow(const Item& item, int64_t first_point, int64_t filter_row,
                            float (&sums)[kStrip][kPack]) const {
    const int64_t first_channel = item.pack * kPack;
    for (int64_t b = 0; b < s.filter[1]; ++b) {
      const int64_t filter_column = p.flipped ? s.filter[1] - 1 - b : b;
      const Pack<T, kPack> weights =
          LoadPack<kPack>(p.filter + (filter_row * s.filter[1] + filter_column) * s.out_channels() + first_channel, 0);
      for (int c = 0; c < kStrip; ++c) {
        const int64_t column = (item.column + c) * s.strides[1] - s.before[1] + b * s.dilations[1];
        float values[kPack];
        const bool inside = column >= 0 && column < s.in[1];
        p.image.template Load<kChannels>(s, inside, first_point + column, first_channel, values);
        for (int k = 0; k < kPack; ++k) sums[c][k] += values[k] * static_cast<float>(weights.at[k]);
      }
    }
  }

  COHORT_KERNEL void AddRowAtOnce(const Item& item, int64_t first_point, int64_t filter_row,
                                  float (&sums)[kStrip][kPack]) const {
    constexpr int kPoints = kStrip + kColumns - 1;
    const int64_t first_channel = item.pack * kPack;
    float values[kPoints][kPack];
    for (int c = 0; c < kPoints; ++c) {
      const int64_t column = item.column - s.before[1] + c;
      const bool inside = column >= 0 && column < s.in[1];
      p.image.template Load<kChannels>(s, inside, first_point + column, first_channel, values[c]);
    }
    for (int b = 0; b < kColumns; ++b) {
      const int64_t filter_column = p.flipped ? kColumns - 1 - b : b;
      const Pack<T, kPack> weights =
          LoadPack<kPack>(p.filter + (filter_row * kColumns + filter_column) * s.out_channels() + first_channel, 0);
      for (int c = 0; c < kStrip; ++c) {
        for (int k = 0; k < kPack; ++k) sums[c][k] += values[c + b][k] * static_cast<float>(weights.at[k]);
      }
    }
  }

  COHORT_KERNEL void Write(const Item& item, const float (&sums)[kStrip][kPack]) const {
    const int64_t first_channel = item.pack * kPack;
    for (int c = 0; c < kStrip && item.column + c < s.out[1]; ++c) {
      Pack<T, kPack> results;
      for (int k = 0; k < kPack; ++k) {
        const float shift = p.bias == nullptr ? 0.0f : static_cast<float>(p.bias[first_channel + k]);
        const T sum(sums[c][k] + shift);
        results.at[k] = T(ApplyActivation(p.activation, static_cast<float>(sum)));
      }
      const int64_t at = ((item.image * s.out[0] + item.row) * s.out[1] + item.column + c) * s.out_channels();
      if (p.applied.activated != nullptr) {
        const auto read = LoadPack<kPack>(static_cast<const T*>(p.applied.activated) + at + first_channel, 0);
        for (int k = 0; k < kPack; ++k) results.at[k] = p.applied.Apply(results.at[k], read.at[k]);
      }
      StorePack<kPack>(p.y + at + first_channel, 0, results);
    }
  }
};

// The gradient by the input for any strides and multipliers: each thread computes one element.
template <typename T>
struct InputGradientKernel {
  DepthwiseSizes s;
  uint32_t items;
  const T* filter;
  const T* dy;
  AppliedGradient applied;
  T* dx;

  COHORT_KERNEL void operator()(const Thread& thread) const {
    for (int64_t at = thread.first(); at < items; at += thread.step()) {
      const auto number = static_cast<uint32_t>(at);
      const int64_t channel = number % static_cast<uint32_t>(s.channels);
      uint32_t rest = number / static_cast<uint32_t>(s.channels);
      const int64_t column = rest % static_cast<uint32_t>(s.in[1]);
      rest /= static_cast<uint32_t>(s.in[1]);
      const int64_t row = rest % static_cast<uint32_t>(s.in[0]);
      const T sum(SumOf(rest / static_cast<uint32_t>(s.in[0]), row, column, channel));
      const bool applies = applied.activated != nullptr;
      dx[at] = applies ? applied.Apply(sum, static_cast<const T*>(applied.activated)[at]) : sum;
    }
  }

 private:
  // Returns which place of the output reads the point through tap `tap`, or -1.
  COHORT_KERNEL int64_t PlaceOf(int axis, int64_t point, int64_t tap) const {
    const int64_t distance = point + s.before[axis] - tap * s.dilations[axis];
    if (distance < 0 || distance % s.strides[axis] != 0) return -1;
    const int64_t place = distance / s.strides[axis];
    return place < s.out[axis] ? place : -1;
  }

  COHORT_KERNEL float SumOf(int64_t image, int64_t row, int64_t column, int64_t channel) const {
    float sum = 0;
    for (int64_t a = 0; a < s.filter[0]; ++a) {
      const int64_t out_row = PlaceOf(0, row, a);
      if (out_row < 0) continue;
      for (int64_t b = 0; b < s.filter[1]; ++b) {
        const int64_t out_column = PlaceOf(1, column, b);
        if (out_column < 0) continue;
        const T* from = dy + ((image * s.out[0] + out_row) * s.out[1] + out_column) * s.out_channels();
        const T* weights = filter + (a * s.filter[1] + b) * s.out_channels();
        for (int64_t m = 0; m < s.multiplier; ++m) {
          const int64_t c = channel * s.multiplier + m;
          sum += static_cast<float>(from[c]) * static_cast<float>(weights[c]);
        }
      }
    }
    return sum;
  }
};

// The first stage of the gradient by the filter. The rows of the sums are the rows of all outputs, and the columns are
// the output channels. A thread adds the products for a window of kRows * kColumns taps. If the filter is larger than
// the window, the window has one tap, and blocks(2) has one for each tap. If `slides` is true, strides and dilations
// along the columns are 1, so the window of the next output has the same elements but for one column.
template <typename T, int kRows, int kColumns>
struct FilterGradientKernel {
  DepthwiseSizes s;
  ColumnSums sums;
  bool slides;
  const T* x;
  Activation activation;  // of x
  const T* dy;
  float* partial;  // [partials, taps, output channels]

  COHORT_KERNEL void operator()(const Thread& thread) const {
    const ColumnShare share(thread, sums);
    if (!share.works) return;
    const int64_t first_tap = thread.block(2);
    float products[kRows][kColumns] = {};
    for (int64_t row = share.begin; row < share.end; row += share.step) {
      AddRow(row / s.out[0], row % s.out[0], share.column, first_tap, products);
    }
    for (int a = 0; a < kRows; ++a) {
      for (int b = 0; b < kColumns; ++b) {
        const int64_t tap = first_tap + a * kColumns + b;
        partial[(share.partial * s.taps() + tap) * sums.columns + share.column] = products[a][b];
      }
    }
  }

 private:
  COHORT_KERNEL void AddRow(int64_t image, int64_t out_row, int64_t channel, int64_t first_tap,
                            float (&products)[kRows][kColumns]) const {
    const int64_t first_row = first_tap / s.filter[1], first_column = first_tap % s.filter[1];
    const T* gradients = dy + (image * s.out[0] + out_row) * s.out[1] * s.out_channels() + channel;
    const T* pixels = x + image * s.in[0] * s.in[1] * s.channels + channel / s.multiplier;
    float window[kRows][kColumns] = {};
    for (int64_t q = 0; q < s.out[1]; ++q) {
      const auto gradient = static_cast<float>(gradients[q * s.out_channels()]);
      for (int a = 0; a < kRows; ++a) {
        const int64_t row = out_row * s.strides[0] - s.before[0] + (first_row + a) * s.dilations[0];
        const bool inside = row >= 0 && row < s.in[0];
        for (int b = 0; b < kColumns; ++b) {
          const int64_t column = q * s.strides[1] - s.before[1] + (first_column + b) * s.dilations[1];
          const bool was_there = slides && q > 0 && b + 1 < kColumns;
          if (was_there) window[a][b] = window[a][b + 1];
          if (!inside || column < 0 || column >= s.in[1]) continue;
          if (!was_there) {
            const T pixel = pixels[(row * s.in[1] + column) * s.channels];
            window[a][b] = static_cast<float>(Activated(activation, pixel));
          }
          products[a][b] += gradient * window[a][b];
        }
      }
    }
  }
};

// Item numbers have 32 bits, because division of 64 bits is slow.
uint32_t ItemCount(int64_t items) {
  constexpr int64_t kMost = int64_t{1} << 32;
  if (items < kMost) return static_cast<uint32_t>(items);
  throw UnimplementedError("[backends/cuda] expected a depthwise convolution of fewer than 2^32 parts; got " +
                           std::to_string(items) + ": use smaller batches");
}

template <typename T, Channels kChannels, int kPack>
void LaunchForward(Driver& driver, StreamHandle stream, const DepthwiseSizes& s, const ForwardPlaces<T>& p) {
  const int64_t packs = s.out_channels() / kPack, strips = ColumnSums::Ceil(s.out[1], kStrip);
  const uint32_t items = ItemCount(s.batch * s.out[0] * strips * packs);
  const auto launch = [&]<int kColumns>(std::integral_constant<int, kColumns>) {
    using Kernel = ForwardKernel<T, kChannels, kPack, kColumns>;
    Launch(driver, stream, SizeFor(items),
           Kernel{s, items, static_cast<uint32_t>(packs), static_cast<uint32_t>(strips), p});
  };
  const bool at_once = s.filter[1] == 3 && s.strides[1] == 1 && s.dilations[1] == 1;
  at_once ? launch(std::integral_constant<int, 3>()) : launch(std::integral_constant<int, 0>());
}

template <typename T>
void Forward(Driver& driver, StreamHandle stream, const DepthwiseSizes& s, const ForwardPlaces<T>& p) {
  constexpr int kPack = 4;
  const bool aligned = IsAligned<T, kPack>(p.filter) && IsAligned<T, kPack>(p.y) &&
                       IsAligned<T, kPack>(static_cast<const T*>(p.applied.activated));
  if (s.multiplier == 1) {
    if (aligned && IsAligned<T, kPack>(p.image.x) && s.channels % kPack == 0) {
      return LaunchForward<T, Channels::kOwn, kPack>(driver, stream, s, p);
    }
    return LaunchForward<T, Channels::kOwn, 1>(driver, stream, s, p);
  }
  if (aligned && s.multiplier % kPack == 0) return LaunchForward<T, Channels::kShared, kPack>(driver, stream, s, p);
  LaunchForward<T, Channels::kShared, 1>(driver, stream, s, p);
}

// Calls fn with a T of the type.
template <typename Fn>
void ForDepthwise(ElementType type, const Fn& fn) {
  type == ElementType::kBfloat16 ? fn(BFloat16()) : fn(float());
}

// A row of the output is short, so a thread has few of them.
ColumnSums FilterSums(const DepthwiseSizes& s) {
  constexpr int64_t kPointsOfThread = 32;
  return {s.batch * s.out[0], s.out_channels(), ColumnSums::Ceil(kPointsOfThread, s.out[1])};
}

// Sizes of the convolution of dy that gives the gradient by the input.
DepthwiseSizes Turned(const DepthwiseSizes& s) {
  DepthwiseSizes turned = s;
  for (int axis = 0; axis < 2; ++axis) {
    turned.in[axis] = s.out[axis];
    turned.out[axis] = s.in[axis];
    turned.before[axis] = (s.filter[axis] - 1) * s.dilations[axis] - s.before[axis];
  }
  return turned;
}

}  // namespace

void LaunchDepthwise(Driver& driver, StreamHandle stream, ElementType type, const DepthwiseSizes& sizes, const void* x,
                     const void* filter, const void* bias, Activation activation, void* y, Activation of_x) {
  ForDepthwise(type, [&]<typename T>(T) {
    const ForwardPlaces<T> places = {false,
                                     {static_cast<const T*>(x), of_x},
                                     static_cast<const T*>(filter),
                                     static_cast<const T*>(bias),
                                     activation,
                                     {},
                                     static_cast<T*>(y)};
    Forward<T>(driver, stream, sizes, places);
  });
}

void LaunchDepthwiseInputGradient(Driver& driver, StreamHandle stream, ElementType type, const DepthwiseSizes& sizes,
                                  const void* filter, const void* dy, void* dx, const AppliedGradient& applied) {
  ForDepthwise(type, [&]<typename T>(T) {
    const T* weights = static_cast<const T*>(filter);
    const T* gradients = static_cast<const T*>(dy);
    T* to = static_cast<T*>(dx);
    if (sizes.multiplier == 1 && sizes.strides[0] == 1 && sizes.strides[1] == 1) {
      return Forward<T>(driver, stream, Turned(sizes),
                        {true, {gradients, Activation::kNone}, weights, nullptr, Activation::kNone, applied, to});
    }
    const uint32_t items = ItemCount(sizes.batch * sizes.in[0] * sizes.in[1] * sizes.channels);
    Launch(driver, stream, SizeFor(items), InputGradientKernel<T>{sizes, items, weights, gradients, applied, to});
  });
}

size_t DepthwiseFilterGradientBytes(const DepthwiseSizes& sizes) {
  return ColumnSumsBytes<float>(FilterSums(sizes), static_cast<int>(sizes.taps()));
}

void LaunchDepthwiseFilterGradient(Driver& driver, StreamHandle stream, ElementType type, const DepthwiseSizes& sizes,
                                   const void* x, const void* dy, void* df, void* scratch, Activation of_x) {
  ForDepthwise(type, [&]<typename T>(T) {
    const ColumnSums sums = FilterSums(sizes);
    const T* from = static_cast<const T*>(x);
    const T* gradients = static_cast<const T*>(dy);
    float* partial = static_cast<float*>(scratch);
    LaunchSize size = FirstStageSize(sums);
    if (sizes.filter[0] == 3 && sizes.filter[1] == 3) {
      const bool slides = sizes.strides[1] == 1 && sizes.dilations[1] == 1;
      Launch(driver, stream, size, FilterGradientKernel<T, 3, 3>{sizes, sums, slides, from, of_x, gradients, partial});
    } else {
      constexpr int64_t kMostTaps = 65535;  // what a launch may have along its third axis
      if (sizes.taps() > kMostTaps) {
        throw UnimplementedError("[backends/cuda] expected a depthwise filter of at most 65535 points; got " +
                                 std::to_string(sizes.taps()));
      }
      size.blocks[2] = static_cast<uint32_t>(sizes.taps());
      Launch(driver, stream, size, FilterGradientKernel<T, 1, 1>{sizes, sums, false, from, of_x, gradients, partial});
    }
    AddPartials<1>(driver, stream, partial, sums.partials(), sizes.taps() * sizes.out_channels(),
                   StoreSums<T>{static_cast<T*>(df), 1.0});
  });
}

}  // namespace cohort::cuda
