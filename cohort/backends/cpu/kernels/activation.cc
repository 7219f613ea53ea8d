// Activation functions and their gradients. A function of one element is a struct with Apply, which elementwise.h makes
// into a loop. FindActivation serves kernels that end in an activation.
#include "cohort/backends/cpu/kernels/activation.h"

#include <cmath>

#include "cohort/backends/cpu/kernels/exponential.h"
#include "cohort/backends/cpu/kernels/register.h"

namespace cohort {
namespace {

using cpu::Exp;
using cpu::ExpM1;
using cpu::Wide;
using cpu::Widest;

constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;

// Functions of one element in the type that it is computed in, as elementwise.h takes them. kCost is in simple
// operations, kWide says whether AVX-512 pays.
struct Cheap {
  static constexpr int64_t kCost = 1;
  static constexpr bool kWide = false;
};
struct Costly {
  static constexpr int64_t kCost = 10;
  static constexpr bool kWide = true;
};

struct ReluFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return x < W(0) ? W(0) : x;
  }  // NaN stays
};
struct Relu6Fn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return x < W(0) ? W(0) : (x > W(6) ? W(6) : x);
  }
};
struct EluFn : Costly {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    const W low = ExpM1(x);
    return x < W(0) ? low : x;
  }
};
struct SeluFn : Costly {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    const W low = W(kSeluScaleAlpha) * ExpM1(x);
    return x < W(0) ? low : W(kSeluScale) * x;
  }
};
struct SigmoidFn : Costly {
  template <typename W>
  static COHORT_INLINE W Apply(W x) {
    return W(1) / (W(1) + Exp(-x));
  }
};
// tanh|x| = -m / (2 + m), m = e^(-2|x|) - 1.
struct TanhFn : Costly {
  static COHORT_INLINE float Apply(float x) {
    const float magnitude = x < 0.0f ? -x : x;
    const float m = ExpM1(-2.0f * magnitude);
    const float t = -m / (2.0f + m);
    return x < 0.0f ? -t : t;
  }
  static COHORT_INLINE double Apply(double x) { return std::tanh(x); }
};
// max(x, 0) + log(1 + e), e = e^-|x|. With s = e / (2 + e) <= 1/3, log(1 + e) = 2 artanh(s) = 2 (s + s^3 / 3 + ...);
// The terms after s^15 are below 2e-9 of it.
struct SoftplusFn : Costly {
  static COHORT_INLINE float Apply(float x) {
    const float e = Exp(x < 0.0f ? x : -x);
    const float s = e / (2.0f + e);
    const float q = s * s;
    const float tail =
        q * (1.0f / 3 + q * (1.0f / 5 + q * (1.0f / 7 + q * (1.0f / 9 + q * (1.0f / 11 + q * (1.0f / 13 + q / 15))))));
    return (x < 0.0f ? 0.0f : x) + 2.0f * (s + s * tail);
  }
  static COHORT_INLINE double Apply(double x) { return (x > 0 ? x : 0.0) + std::log1p(std::exp(-std::abs(x))); }
};

// Functions of two elements, in the order of the op's inputs.

struct ReluGradFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W g, W x) {
    return x > W(0) ? g : W(0);
  }
};
struct Relu6GradFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W g, W x) {
    return ((x > W(0)) & (x < W(6))) ? g : W(0);
  }
};
struct EluGradFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W g, W y) {
    return y < W(0) ? (y + W(1)) * g : g;
  }
};
struct SeluGradFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W g, W y) {
    return (y < W(0) ? y + W(kSeluScaleAlpha) : W(kSeluScale)) * g;
  }
};
struct SoftplusGradFn : Costly {
  template <typename W>
  static COHORT_INLINE W Apply(W g, W x) {
    return g / (W(1) + Exp(-x));
  }
};
struct SigmoidGradFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W y, W dy) {
    return dy * y * (W(1) - y);
  }
};
struct TanhGradFn : Cheap {
  template <typename W>
  static COHORT_INLINE W Apply(W y, W dy) {
    return dy * (W(1) - y * y);
  }
};

// Two tensors of one shape.
void CheckSameShape(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) {
    throw InvalidArgumentError(
        StrCat("[kernels/activation] expected two tensors of one shape; got ", a.shape(), " and ", b.shape()));
  }
}

class GradKernel final : public OpKernel {
 public:
  using Loop = void (*)(const void* a, const void* b, void* out, int64_t n);
  GradKernel(Loop loop, int64_t cost, size_t element_size)
      : loop_(loop), cost_(cost), size_(static_cast<int64_t>(element_size)) {}
  void Compute(KernelContext& ctx) override {
    CheckSameShape(ctx.input(0), ctx.input(1));
    Tensor& y = ctx.ForwardInputOrAllocate({0, 1}, 0, ctx.input(0).shape());
    const auto* left = static_cast<const char*>(ctx.input(0).raw_data());
    const auto* right = static_cast<const char*>(ctx.input(1).raw_data());
    auto* to = static_cast<char*>(y.raw_data());
    cpu::ForBlocks(
        y.num_elements(), ctx.num_threads(),
        [&](int64_t begin, int64_t end) {
          const int64_t at = begin * size_;
          loop_(left + at, right + at, to + at, end - begin);
        },
        cost_);
  }

 private:
  const Loop loop_;
  const int64_t cost_;
  const int64_t size_;
};

template <typename T>
struct LeakyReluBody {
  static COHORT_INLINE void Run(const void* input, void* output, int64_t n, float slope) {
    const T* x = static_cast<const T*>(input);
    T* y = static_cast<T*>(output);
    const auto alpha = static_cast<Wide<T>>(slope);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const auto value = static_cast<Wide<T>>(x[i]);
      y[i] = static_cast<T>(value > Wide<T>(0) ? value : value * alpha);
    }
  }
};

template <typename T>
struct LeakyReluGradBody {
  static COHORT_INLINE void Run(const void* gradients, const void* features, void* output, int64_t n, float slope) {
    const T* g = static_cast<const T*>(gradients);
    const T* x = static_cast<const T*>(features);
    T* y = static_cast<T*>(output);
    const auto alpha = static_cast<Wide<T>>(slope);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const auto gradient = static_cast<Wide<T>>(g[i]);
      y[i] = static_cast<T>(static_cast<Wide<T>>(x[i]) > Wide<T>(0) ? gradient : gradient * alpha);
    }
  }
};

class LeakyReluKernel final : public OpKernel {
 public:
  explicit LeakyReluKernel(const KernelConstruction& c)
      : alpha_(c.attr<float>("alpha")), loop_(cpu::ForFloating(c.attr<DType>("T"), c.node.op_name(), []<typename T>(T) {
          return Widest<LeakyReluBody<T>>();
        })) {}
  void Compute(KernelContext& ctx) override {
    Tensor& y = ctx.ForwardInputOrAllocate(0, 0, ctx.input(0).shape());
    loop_(ctx.input(0).raw_data(), y.raw_data(), y.num_elements(), alpha_);
  }

 private:
  const float alpha_;
  void (*const loop_)(const void*, void*, int64_t, float);
};

class LeakyReluGradKernel final : public OpKernel {
 public:
  explicit LeakyReluGradKernel(const KernelConstruction& c)
      : alpha_(c.attr<float>("alpha")), loop_(cpu::ForFloating(c.attr<DType>("T"), c.node.op_name(), []<typename T>(T) {
          return Widest<LeakyReluGradBody<T>>();
        })) {}
  void Compute(KernelContext& ctx) override {
    CheckSameShape(ctx.input(0), ctx.input(1));
    Tensor& y = ctx.ForwardInputOrAllocate({0, 1}, 0, ctx.input(0).shape());
    loop_(ctx.input(0).raw_data(), ctx.input(1).raw_data(), y.raw_data(), y.num_elements(), alpha_);
  }

 private:
  const float alpha_;
  void (*const loop_)(const void*, const void*, void*, int64_t, float);
};

template <typename Fn>
cpu::ActivationLoop LoopOf(const std::string& op, DType dtype) {
  return cpu::ForFloating(dtype, op, []<typename T>(T) {
    return cpu::ActivationLoop{Widest<cpu::UnaryBody<Fn, T, T>>(Fn::kWide), Fn::kCost};
  });
}

struct NamedActivation {
  const char* op;
  cpu::ActivationLoop (*loop)(const std::string& op, DType dtype);
};
constexpr NamedActivation kActivations[] = {{"Relu", LoopOf<ReluFn>},        {"Relu6", LoopOf<Relu6Fn>},
                                            {"Elu", LoopOf<EluFn>},          {"Selu", LoopOf<SeluFn>},
                                            {"Sigmoid", LoopOf<SigmoidFn>},  {"Tanh", LoopOf<TanhFn>},
                                            {"Softplus", LoopOf<SoftplusFn>}};

template <typename Fn>
void RegisterGrad(KernelRegistry& registry, const char* op) {
  registry.Register(op, "CPU", [](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
    return cpu::ForFloating(c.attr<DType>("T"), c.node.op_name(), []<typename T>(T) {
      return std::make_unique<GradKernel>(Widest<cpu::BothBody<Fn, T, T>>(Fn::kWide), Fn::kCost, sizeof(T));
    });
  });
}

}  // namespace

cpu::ActivationLoop cpu::FindActivation(const std::string& op, DType dtype) {
  for (const NamedActivation& activation : kActivations) {
    if (op == activation.op) return activation.loop(op, dtype);
  }
  return {};
}

void RegisterActivationKernels(KernelRegistry& registry) {
  for (const NamedActivation& activation : kActivations) {
    registry.Register(activation.op, "CPU", [&activation](const KernelConstruction& c) -> std::unique_ptr<OpKernel> {
      const cpu::ActivationLoop found = activation.loop(activation.op, c.attr<DType>("T"));
      return std::make_unique<cpu::UnaryKernel>(found.loop, found.cost);
    });
  }
  RegisterGrad<ReluGradFn>(registry, "ReluGrad");
  RegisterGrad<Relu6GradFn>(registry, "Relu6Grad");
  RegisterGrad<EluGradFn>(registry, "EluGrad");
  RegisterGrad<SeluGradFn>(registry, "SeluGrad");
  RegisterGrad<SoftplusGradFn>(registry, "SoftplusGrad");
  RegisterGrad<SigmoidGradFn>(registry, "SigmoidGrad");
  RegisterGrad<TanhGradFn>(registry, "TanhGrad");
  registry.Register<LeakyReluKernel>("LeakyRelu", "CPU");
  registry.Register<LeakyReluGradKernel>("LeakyReluGrad", "CPU");
}

}  // namespace cohort
