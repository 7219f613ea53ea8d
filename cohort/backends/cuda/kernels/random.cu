// Random numbers. A distribution draws groups of kGroup numbers; group g is drawn from the generator skipped by g *
// kSkip, so that threads draw groups in any order. Group sizes and skips are those of the CPU's kernels and of
// TensorFlow's.
#include <type_traits>

#include "cohort/backends/cuda/kernels/random.cu.h"

namespace cohort::cuda {
namespace {

template <typename T>
inline constexpr int kFloatsOfGroup = std::is_same_v<T, double> ? 2 : 4;

template <typename T>
struct UniformNumbers {
  using Type = T;
  static constexpr int kGroup = kFloatsOfGroup<T>;
  static constexpr int kSkip = 1;
  COHORT_KERNEL void Draw(PhiloxCounter& philox, T* out) const {
    uint32_t words[4];
    philox.Next(words);
    for (int i = 0; i < kGroup; ++i) {
      if constexpr (std::is_same_v<T, double>) {
        out[i] = UniformDoubleOf(words[2 * i], words[2 * i + 1]);
      } else if constexpr (std::is_same_v<T, BFloat16>) {
        out[i] = UniformBFloat16Of(words[i]);
      } else {
        out[i] = UniformFloatOf(words[i]);
      }
    }
  }
};

template <typename T>
struct NormalNumbers {
  using Type = T;
  static constexpr int kGroup = kFloatsOfGroup<T>;
  static constexpr int kSkip = 1;
  COHORT_KERNEL void Draw(PhiloxCounter& philox, T* out) const {
    uint32_t words[4];
    philox.Next(words);
    if constexpr (std::is_same_v<T, double>) {
      NormalDoublesOf(words, out);
    } else {
      float numbers[4];
      NormalFloatsOf(words[0], words[1], numbers);
      NormalFloatsOf(words[2], words[3], numbers + 2);
      for (int i = 0; i < kGroup; ++i) out[i] = static_cast<T>(numbers[i]);
    }
  }
};

// Normal numbers, of which those outside of (-2, 2) are left out.
template <typename T>
struct TruncatedNumbers {
  using Type = T;
  static constexpr int kGroup = kFloatsOfGroup<T>;
  static constexpr int kReserved = 256;  // words for each number, of which a few are used
  static constexpr int kSkip = kGroup * kReserved / 4;
  COHORT_KERNEL void Draw(PhiloxCounter& philox, T* out) const {
    using W = Wide<T>;
    PhiloxCounter words = philox;
    philox.Skip(kSkip);
    for (int done = 0; done < kGroup;) {
      uint32_t four[4];
      words.Next(four);
      W numbers[4];
      if constexpr (std::is_same_v<T, double>) {
        NormalDoublesOf(four, numbers);
      } else {
        NormalFloatsOf(four[0], four[1], numbers);
        NormalFloatsOf(four[2], four[3], numbers + 2);
      }
      for (int i = 0; i < kGroup && done < kGroup; ++i) {
        if (std::fabs(numbers[i]) < W(2)) out[done++] = static_cast<T>(numbers[i]);
      }
    }
  }
};

// low + word mod range.
template <typename T>
struct IntegerNumbers {
  using Type = T;
  using Unsigned = std::make_unsigned_t<T>;
  static constexpr int kGroup = sizeof(T) == 8 ? 2 : 4;
  static constexpr int kSkip = 1;
  Unsigned low;
  Unsigned range;
  COHORT_KERNEL void Draw(PhiloxCounter& philox, T* out) const {
    uint32_t words[4];
    philox.Next(words);
    for (int i = 0; i < kGroup; ++i) {
      Unsigned bits;
      if constexpr (kGroup == 2) {
        bits = words[2 * i] | (static_cast<uint64_t>(words[2 * i + 1]) << 32);
      } else {
        bits = words[i];
      }
      out[i] = static_cast<T>(low + (range == 0 ? bits : bits % range));
    }
  }
};

template <typename D>
struct DrawNumbers {
  D distribution;
  RandomStart start;
  typename D::Type* out;
  int64_t n;

  COHORT_KERNEL void operator()(const Thread& t) const {
    const PhiloxCounter first = start.on_card == nullptr ? start.value : *start.on_card;
    for (int64_t group = t.first(); group * D::kGroup < n; group += t.step()) {
      PhiloxCounter philox = first;
      philox.Skip(static_cast<uint64_t>(group) * D::kSkip);
      typename D::Type numbers[D::kGroup];
      distribution.Draw(philox, numbers);
      for (int i = 0; i < D::kGroup && group * D::kGroup + i < n; ++i) out[group * D::kGroup + i] = numbers[i];
    }
  }
};

template <typename D>
void Draw(Driver& driver, StreamHandle stream, const D& distribution, const RandomStart& start, void* out, int64_t n) {
  using T = typename D::Type;
  Launch(driver, stream, SizeFor((n + D::kGroup - 1) / D::kGroup),
         DrawNumbers<D>{distribution, start, static_cast<T*>(out), n});
}

// The two seeds are mixed, as Philox::FromStatelessSeed does.
template <typename T>
struct StartOfSeed {
  const T* seed;
  PhiloxCounter* out;

  COHORT_KERNEL void operator()(const Thread& t) const {
    if (t.first() != 0) return;
    const auto a = static_cast<uint64_t>(static_cast<int64_t>(seed[0]));
    const auto b = static_cast<uint64_t>(static_cast<int64_t>(seed[1]));
    PhiloxCounter mixer = {{static_cast<uint32_t>(a), static_cast<uint32_t>(a >> 32), static_cast<uint32_t>(b),
                            static_cast<uint32_t>(b >> 32)},
                           {0x3ec8f720U, 0x02461e29U}};
    uint32_t mix[4];
    mixer.Next(mix);
    *out = PhiloxCounter{{0, 0, mix[2], mix[3]}, {mix[0], mix[1]}};
  }
};

template <typename T>
struct ShuffleRows {
  const T* in;
  const int64_t* order;
  int64_t rows;
  int64_t row;
  T* out;

  COHORT_KERNEL void operator()(const Thread& t) const {
    for (int64_t i = t.first(); i < rows * row; i += t.step()) out[i] = in[order[i / row] * row + i % row];
  }
};

}  // namespace

void LaunchRandom(Driver& driver, StreamHandle stream, Distribution distribution, ElementType type,
                  const RandomStart& start, void* out, int64_t n) {
  ForFloating(type, "random numbers", [&]<typename T>(T) {
    switch (distribution) {
      case Distribution::kUniform: return Draw(driver, stream, UniformNumbers<T>(), start, out, n);
      case Distribution::kNormal: return Draw(driver, stream, NormalNumbers<T>(), start, out, n);
      case Distribution::kTruncatedNormal: return Draw(driver, stream, TruncatedNumbers<T>(), start, out, n);
    }
  });
}

void LaunchStartOfSeed(Driver& driver, StreamHandle stream, ElementType type, const void* seed, PhiloxCounter* out) {
  if (type == ElementType::kInt64) {
    return Launch(driver, stream, LaunchSize(), StartOfSeed<int64_t>{static_cast<const int64_t*>(seed), out});
  }
  Launch(driver, stream, LaunchSize(), StartOfSeed<int32_t>{static_cast<const int32_t*>(seed), out});
}

void LaunchRandomIntegers(Driver& driver, StreamHandle stream, ElementType type, const RandomStart& start, uint64_t low,
                          uint64_t range, void* out, int64_t n) {
  if (type == ElementType::kInt64) {
    return Draw(driver, stream, IntegerNumbers<int64_t>{low, range}, start, out, n);
  }
  const IntegerNumbers<int32_t> narrow{static_cast<uint32_t>(low), static_cast<uint32_t>(range)};
  Draw(driver, stream, narrow, start, out, n);
}

void LaunchShuffle(Driver& driver, StreamHandle stream, size_t element_bytes, const void* in, const int64_t* order,
                   int64_t rows, int64_t row, void* out) {
  ForSizes(element_bytes, "RandomShuffle", [&]<typename T>(T) {
    Launch(driver, stream, SizeFor(rows * row),
           ShuffleRows<T>{static_cast<const T*>(in), order, rows, row, static_cast<T*>(out)});
  });
}

}  // namespace cohort::cuda
