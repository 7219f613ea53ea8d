// Random ops. A distribution makes a group of numbers from the Philox generator. Group g uses the generator at a fixed
// position, so that threads may make groups in any order and the numbers equal those of TensorFlow's CPU kernels.
// Stateful kernels own a generator that advances (GuardedPhilox); stateless kernels get a seed. The inputs are read as
// backends/random_inputs.h does.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/random_inputs.h"
#include "cohort/core/philox.h"
#include "cohort/device/kernel.h"

namespace cohort {
namespace {

// A distribution fills groups of kGroup numbers; group g is drawn from the generator skipped by g * kSkip, so that
// groups can be drawn in any order. Group sizes and skips are those of TensorFlow's CPU kernels.

template <typename T>
struct Uniform {
  using Type = T;
  static constexpr int kGroup = std::is_same_v<T, double> ? 2 : 4;
  static constexpr int kSkip = 1;
  void Draw(Philox& philox, T* out) const {
    const Philox::Result words = philox();
    if constexpr (std::is_same_v<T, double>) {
      out[0] = UniformDouble(words[0], words[1]);
      out[1] = UniformDouble(words[2], words[3]);
    } else if constexpr (std::is_same_v<T, bfloat16>) {
      // 7 random bits as mantissa of a number in [1, 2).
      for (int i = 0; i < 4; ++i) {
        const auto bits = static_cast<uint16_t>(127u << 7 | (words[static_cast<size_t>(i)] & 0x7fu));
        out[i] = bfloat16(static_cast<float>(bfloat16::FromBits(bits)) - 1.0f);
      }
    } else {
      for (int i = 0; i < 4; ++i) out[i] = UniformFloat(words[static_cast<size_t>(i)]);
    }
  }
};

template <typename T>
struct Normal {
  using Type = T;
  static constexpr int kGroup = std::is_same_v<T, double> ? 2 : 4;
  static constexpr int kSkip = 1;
  void Draw(Philox& philox, T* out) const {
    const Philox::Result w = philox();
    if constexpr (std::is_same_v<T, double>) {
      std::tie(out[0], out[1]) = NormalDoubles(w[0], w[1], w[2], w[3]);
    } else {
      const auto first = NormalFloats(w[0], w[1]);
      const auto second = NormalFloats(w[2], w[3]);
      out[0] = static_cast<T>(first.first);
      out[1] = static_cast<T>(first.second);
      out[2] = static_cast<T>(second.first);
      out[3] = static_cast<T>(second.second);
    }
  }
};

template <typename T>
struct Truncated {
  using Type = T;
  static constexpr int kGroup = std::is_same_v<T, double> ? 2 : 4;
  static constexpr int kReserved = 256;  // words a number, of which a few are used
  static constexpr int kSkip = kGroup * kReserved / Philox::kWords;
  void Draw(Philox& philox, T* out) const {
    PhiloxWords words(philox);
    philox.Skip(kSkip);
    int done = 0;
    const auto keep = [&](auto value) {
      if (done < kGroup && std::abs(value) < 2) out[done++] = static_cast<T>(value);
    };
    while (done < kGroup) {
      const uint32_t w0 = words();
      const uint32_t w1 = words();
      if constexpr (std::is_same_v<T, double>) {
        const uint32_t w2 = words();
        const uint32_t w3 = words();
        const auto [a, b] = NormalDoubles(w0, w1, w2, w3);
        keep(a);
        keep(b);
      } else {
        const auto [a, b] = NormalFloats(w0, w1);
        keep(a);
        keep(b);
      }
    }
  }
};

// lo + word mod range. Range 0 means all values of T.
template <typename T>
struct UniformInt {
  using Type = T;
  using Unsigned = std::make_unsigned_t<T>;
  static constexpr int kGroup = std::is_same_v<T, int64_t> ? 2 : 4;
  static constexpr int kSkip = 1;
  void Draw(Philox& philox, T* out) const {
    const Philox::Result words = philox();
    for (int i = 0; i < kGroup; ++i) {
      Unsigned bits;
      if constexpr (kGroup == 2) {
        bits = words[static_cast<size_t>(2 * i)] | uint64_t{words[static_cast<size_t>(2 * i + 1)]} << 32;
      } else {
        bits = words[static_cast<size_t>(i)];
      }
      out[i] = static_cast<T>(static_cast<Unsigned>(low) + (range == 0 ? bits : bits % range));
    }
  }
  T low = 0;
  Unsigned range = 0;
};

template <typename D>
void FillWith(const D& distribution, const Philox& start, Tensor& out, int threads) {
  using T = typename D::Type;
  constexpr int64_t kCostOfGroup = 60;  // in simple operations
  const int64_t n = out.num_elements();
  T* data = out.data<T>();
  cpu::ForBlocks((n + D::kGroup - 1) / D::kGroup, threads,
                 [&](int64_t begin, int64_t end) {
                   Philox philox = start;
                   philox.Skip(static_cast<uint64_t>(begin) * D::kSkip);
                   for (int64_t group = begin; group < end; ++group) {
                     const int64_t at = group * D::kGroup;
                     if (at + D::kGroup <= n) {
                       distribution.Draw(philox, data + at);
                       continue;
                     }
                     T last[D::kGroup];
                     distribution.Draw(philox, last);
                     std::copy(last, last + (n - at), data + at);
                   }
                 },
                 kCostOfGroup);
}

using FillFn = void (*)(const Philox& start, Tensor& out, int threads);

template <template <typename> class D>
FillFn PickFill(const KernelConstruction& c) {
  return cpu::ForFloating(c.attr<DType>("dtype"), c.node.op_name(), [](auto tag) -> FillFn {
    return [](const Philox& start, Tensor& out, int threads) { FillWith(D<decltype(tag)>(), start, out, threads); };
  });
}

template <template <typename> class D>
class StatefulKernel final : public OpKernel {
 public:
  explicit StatefulKernel(const KernelConstruction& c) : philox_(c), fill_(PickFill<D>(c)) {}
  void Compute(KernelContext& ctx) override {
    Tensor& out = ctx.AllocateOutput(0, ShapeOfDims(ctx.input(0)));
    fill_(philox_.ReserveFor(ctx, out.num_elements()), out, ctx.num_threads());
  }

 private:
  GuardedPhilox philox_;
  const FillFn fill_;
};

template <template <typename> class D>
class StatelessKernel final : public OpKernel {
 public:
  explicit StatelessKernel(const KernelConstruction& c) : fill_(PickFill<D>(c)) {}
  void Compute(KernelContext& ctx) override {
    Tensor& out = ctx.AllocateOutput(0, ShapeOfDims(ctx.input(0)));
    fill_(PhiloxOfSeedInput(ctx.input(1)), out, ctx.num_threads());
  }

 private:
  const FillFn fill_;
};

template <typename T>
void FillIntegers(const Philox& start, const Tensor& minval, const Tensor& maxval, Tensor& out, int threads) {
  const T low = minval.scalar<T>();
  const T high = maxval.scalar<T>();
  if (low >= high) {
    throw InvalidArgumentError(StrCat("[kernels/random] Need minval < maxval, got ", low, " >= ", high));
  }
  using Unsigned = std::make_unsigned_t<T>;
  FillWith(UniformInt<T>{low, static_cast<Unsigned>(high) - static_cast<Unsigned>(low)}, start, out, threads);
}

class StatefulIntKernel final : public OpKernel {
 public:
  explicit StatefulIntKernel(const KernelConstruction& c)
      : philox_(c), fill_(c.attr<DType>("Tout") == DType::kInt64 ? &FillIntegers<int64_t> : &FillIntegers<int32_t>) {}
  void Compute(KernelContext& ctx) override {
    Tensor& out = ctx.AllocateOutput(0, ShapeOfDims(ctx.input(0)));
    if (out.num_elements() == 0) return;
    fill_(philox_.ReserveFor(ctx, out.num_elements()), ctx.input(1), ctx.input(2), out, ctx.num_threads());
  }

 private:
  GuardedPhilox philox_;
  void (*const fill_)(const Philox&, const Tensor&, const Tensor&, Tensor&, int);
};

void StatelessInt(KernelContext& ctx) {
  Tensor& out = ctx.AllocateOutput(0, ShapeOfDims(ctx.input(0)));
  const Philox start = PhiloxOfSeedInput(ctx.input(1));
  if (out.num_elements() == 0) return;
  (out.dtype() == DType::kInt64 ? FillIntegers<int64_t> : FillIntegers<int32_t>)(start, ctx.input(2), ctx.input(3), out,
                                                                                 ctx.num_threads());
}

void StatelessFullInt(KernelContext& ctx) {
  Tensor& out = ctx.AllocateOutput(0, ShapeOfDims(ctx.input(0)));
  const Philox start = PhiloxOfSeedInput(ctx.input(1));
  if (out.dtype() == DType::kInt64) {
    FillWith(UniformInt<int64_t>{}, start, out, ctx.num_threads());
  } else {
    FillWith(UniformInt<int32_t>{}, start, out, ctx.num_threads());
  }
}

// Draws classes: the place of a uniform number among the running sums of the probabilities is the class.
class MultinomialKernel final : public OpKernel {
 public:
  explicit MultinomialKernel(const KernelConstruction& c) : philox_(c) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& logits = ctx.input(0);
    if (logits.shape().rank() != 2) {
      throw InvalidArgumentError(StrCat("expected logits of shape [batch, classes]; got ", logits.shape()));
    }
    const int64_t samples = ctx.input(1).scalar<int32_t>(), classes = logits.shape().dim(1);
    if (samples < 0) throw InvalidArgumentError(StrCat("expected num_samples of at least 0; got ", samples));
    if (classes == 0 && samples > 0) throw InvalidArgumentError("expected logits of at least one class; got none");
    const int64_t batch = logits.shape().dim(0);
    Tensor& out = ctx.AllocateOutput(0, Shape{batch, samples});
    // As many calls as TensorFlow reserves: a double takes two words.
    const Philox start = philox_.ReserveFor(ctx, batch * ((samples + 3) / 4 * 4) * 2);
    cpu::ForNumbers(logits.dtype(), "Multinomial", [&]<typename T>(T) {
      if (out.dtype() == DType::kInt64) {
        Draw<T, int64_t>(logits, samples, PhiloxWords(start), out);
      } else {
        Draw<T, int32_t>(logits, samples, PhiloxWords(start), out);
      }
      return 0;
    });
  }

 private:
  template <typename T, typename Class>
  static void Draw(const Tensor& logits, int64_t samples, PhiloxWords words, Tensor& out) {
    const int64_t classes = logits.shape().dim(1);
    std::vector<double> sums(static_cast<size_t>(classes));
    Class* to = out.data<Class>();
    for (int64_t b = 0; b < logits.shape().dim(0); ++b) {
      const T* row = logits.data<T>() + b * classes;
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t c = 0; c < classes; ++c) {
        const auto logit = static_cast<double>(static_cast<cpu::Wide<T>>(row[c]));
        if (std::isfinite(logit)) largest = std::max(largest, logit);
      }
      for (int64_t c = 0; c < classes; ++c) {
        const auto logit = static_cast<double>(static_cast<cpu::Wide<T>>(row[c]));
        if (std::isfinite(logit)) sum += std::exp(logit - largest);
        sums[static_cast<size_t>(c)] = sum;
      }
      for (int64_t s = 0; s < samples; ++s) {
        const uint32_t low = words(), high = words();
        const auto place = std::upper_bound(sums.begin(), sums.end(), UniformDouble(low, high) * sum);
        *to++ = static_cast<Class>(place - sums.begin());
      }
    }
  }

  GuardedPhilox philox_;
};

// Copies the rows in a random order.
class ShuffleKernel final : public OpKernel {
 public:
  explicit ShuffleKernel(const KernelConstruction& c) : philox_(c) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(0);
    const int64_t rows = value.shape().rank() < 1 ? 1 : value.shape().dim(0);
    if (rows <= 1 || value.num_elements() <= 1) {
      ctx.SetOutput(0, value);
      return;
    }
    CopyRows(value, philox_.RandomOrder(ctx, rows), ctx.AllocateOutput(0, value.shape()));
  }

 private:
  static void CopyRows(const Tensor& value, const std::vector<int64_t>& order, Tensor& out) {
    const int64_t row = value.num_elements() / static_cast<int64_t>(order.size());
    if (value.dtype() == DType::kString) {
      const std::string* from = value.data<std::string>();
      std::string* to = out.data<std::string>();
      for (const int64_t source : order) to = std::copy(from + source * row, from + (source + 1) * row, to);
      return;
    }
    const auto bytes = static_cast<int64_t>(value.bytes()) / static_cast<int64_t>(order.size());
    const auto* from = static_cast<const char*>(value.raw_data());
    auto* to = static_cast<char*>(out.raw_data());
    for (const int64_t source : order) to = std::copy(from + source * bytes, from + (source + 1) * bytes, to);
  }

  GuardedPhilox philox_;
};

}  // namespace

void RegisterRandomKernels(KernelRegistry& registry) {
  registry.Register<StatefulKernel<Uniform>>("RandomUniform", "CPU");
  registry.Register<StatefulKernel<Normal>>("RandomStandardNormal", "CPU");
  registry.Register<StatefulKernel<Truncated>>("TruncatedNormal", "CPU");
  registry.Register<StatefulIntKernel>("RandomUniformInt", "CPU");
  registry.Register<MultinomialKernel>("Multinomial", "CPU");
  registry.Register<ShuffleKernel>("RandomShuffle", "CPU");
  registry.Register<StatelessKernel<Uniform>>("StatelessRandomUniform", "CPU");
  registry.Register<StatelessKernel<Normal>>("StatelessRandomNormal", "CPU");
  registry.Register<StatelessKernel<Truncated>>("StatelessTruncatedNormal", "CPU");
  registry.RegisterFn("StatelessRandomUniformInt", "CPU", StatelessInt);
  registry.RegisterFn("StatelessRandomUniformFullInt", "CPU", StatelessFullInt);
}

}  // namespace cohort
