#include <cmath>

#include "cohort/device/kernel.h"
#include "cohort/kernels/cpu/exponential.h"
#include "cohort/kernels/cpu/loops.h"
#include "cohort/kernels/register.h"

namespace cohort {
namespace {

using cpu::Exp;
using cpu::ExpM1;

constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;

// Functions of an element; W is float or double. `kCost` is in simple operations.

struct ReluFn {
  static constexpr int64_t kCost = 1;
  explicit ReluFn(const KernelConstruction&) {}
  template <typename W>
  W operator()(W x) const { return x < W(0) ? W(0) : x; }  // NaN stays
};

struct Relu6Fn {
  static constexpr int64_t kCost = 1;
  explicit Relu6Fn(const KernelConstruction&) {}
  template <typename W>
  W operator()(W x) const { return x < W(0) ? W(0) : (x > W(6) ? W(6) : x); }
};

struct LeakyReluFn {
  static constexpr int64_t kCost = 1;
  explicit LeakyReluFn(const KernelConstruction& c) : alpha(c.attr<float>("alpha")) {}
  template <typename W>
  W operator()(W x) const { return x > W(0) ? x : x * static_cast<W>(alpha); }
  float alpha;
};

struct EluFn {
  static constexpr int64_t kCost = 8;
  explicit EluFn(const KernelConstruction&) {}
  template <typename W>
  W operator()(W x) const {
    const W low = ExpM1(x);
    return x < W(0) ? low : x;
  }
};

struct SeluFn {
  static constexpr int64_t kCost = 8;
  explicit SeluFn(const KernelConstruction&) {}
  template <typename W>
  W operator()(W x) const {
    const W low = W(kSeluScaleAlpha) * ExpM1(x);
    return x < W(0) ? low : W(kSeluScale) * x;
  }
};

struct SigmoidFn {
  static constexpr int64_t kCost = 8;
  explicit SigmoidFn(const KernelConstruction&) {}
  template <typename W>
  W operator()(W x) const { return W(1) / (W(1) + Exp(-x)); }
};

struct TanhFn {
  static constexpr int64_t kCost = 10;
  explicit TanhFn(const KernelConstruction&) {}
  // tanh|x| = -m / (2 + m), m = e^(-2|x|) - 1.
  float operator()(float x) const {
    const float magnitude = x < 0.0f ? -x : x;
    const float m = ExpM1(-2.0f * magnitude);
    const float t = -m / (2.0f + m);
    return x < 0.0f ? -t : t;
  }
  double operator()(double x) const { return std::tanh(x); }
};

struct SoftplusFn {
  static constexpr int64_t kCost = 40;
  explicit SoftplusFn(const KernelConstruction&) {}
  template <typename W>
  W operator()(W x) const { return (x > W(0) ? x : W(0)) + std::log1p(std::exp(-std::abs(x))); }
};

// Functions of two elements, in the order of the op's inputs.

struct ReluGradFn {
  explicit ReluGradFn(const KernelConstruction&) {}
  template <typename W>
  W operator()(W g, W x) const { return x > W(0) ? g : W(0); }
};

struct Relu6GradFn {
  explicit Relu6GradFn(const KernelConstruction&) {}
  template <typename W>
  W operator()(W g, W x) const { return (x > W(0)) & (x < W(6)) ? g : W(0); }
};

struct LeakyReluGradFn {
  explicit LeakyReluGradFn(const KernelConstruction& c) : alpha(c.attr<float>("alpha")) {}
  template <typename W>
  W operator()(W g, W x) const { return x > W(0) ? g : g * static_cast<W>(alpha); }
  float alpha;
};

struct EluGradFn {
  explicit EluGradFn(const KernelConstruction&) {}
  template <typename W>
  W operator()(W g, W y) const { return y < W(0) ? (y + W(1)) * g : g; }
};

struct SeluGradFn {
  explicit SeluGradFn(const KernelConstruction&) {}
  template <typename W>
  W operator()(W g, W y) const { return y < W(0) ? (y + W(kSeluScaleAlpha)) * g : W(kSeluScale) * g; }
};

struct SoftplusGradFn {
  explicit SoftplusGradFn(const KernelConstruction&) {}
  template <typename W>
  W operator()(W g, W x) const { return g / (W(1) + Exp(-x)); }
};

struct SigmoidGradFn {
  explicit SigmoidGradFn(const KernelConstruction&) {}
  template <typename W>
  W operator()(W y, W dy) const { return dy * y * (W(1) - y); }
};

struct TanhGradFn {
  explicit TanhGradFn(const KernelConstruction&) {}
  template <typename W>
  W operator()(W y, W dy) const { return dy * (W(1) - y * y); }
};

// Input and output may be the same memory.
template <typename T, typename Fn>
void UnaryLoop(const Fn& fn, const void* input, void* output, int64_t begin, int64_t end) {
  const T* x = static_cast<const T*>(input);
  T* y = static_cast<T*>(output);
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(fn(static_cast<cpu::Wide<T>>(x[i])));
}

template <typename T, typename Fn>
void BinaryLoop(const Fn& fn, const void* left, const void* right, void* output, int64_t begin, int64_t end) {
  const T* a = static_cast<const T*>(left);
  const T* b = static_cast<const T*>(right);
  T* y = static_cast<T*>(output);
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    y[i] = static_cast<T>(fn(static_cast<cpu::Wide<T>>(a[i]), static_cast<cpu::Wide<T>>(b[i])));
  }
}

template <typename Fn>
class UnaryKernel final : public OpKernel {
 public:
  explicit UnaryKernel(const KernelConstruction& c)
      : fn_(c), loop_(cpu::ForFloating(c.attr<DType>("T"), c.node.op_name(),
                                       [](auto tag) -> Loop { return &UnaryLoop<decltype(tag), Fn>; })) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    Tensor& y = ctx.ForwardInputOrAllocate(0, 0, x.shape());
    const void* from = x.raw_data();
    void* to = y.raw_data();
    cpu::ForBlocks(
        x.num_elements(), ctx.num_threads(),
        [&](int64_t begin, int64_t end) { loop_(fn_, from, to, begin, end); }, Fn::kCost);
  }

 private:
  using Loop = void (*)(const Fn&, const void*, void*, int64_t, int64_t);
  const Fn fn_;
  const Loop loop_;
};

template <typename Fn>
class GradKernel final : public OpKernel {
 public:
  explicit GradKernel(const KernelConstruction& c)
      : fn_(c), loop_(cpu::ForFloating(c.attr<DType>("T"), c.node.op_name(),
                                       [](auto tag) -> Loop { return &BinaryLoop<decltype(tag), Fn>; })) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& a = ctx.input(0);
    const Tensor& b = ctx.input(1);
    if (a.shape() != b.shape()) {
      throw InvalidArgumentError(StrCat("[kernels/activation] expected two tensors of one shape; got ", a.shape(), " and ",
                                        b.shape()));
    }
    Tensor& y = ctx.ForwardInputOrAllocate({0, 1}, 0, a.shape());
    const void* left = a.raw_data();
    const void* right = b.raw_data();
    void* to = y.raw_data();
    cpu::ForBlocks(a.num_elements(), ctx.num_threads(),
                   [&](int64_t begin, int64_t end) { loop_(fn_, left, right, to, begin, end); });
  }

 private:
  using Loop = void (*)(const Fn&, const void*, const void*, void*, int64_t, int64_t);
  const Fn fn_;
  const Loop loop_;
};

}  // namespace

void RegisterActivationKernels(KernelRegistry& registry) {
  registry.Register<UnaryKernel<ReluFn>>("Relu", "CPU");
  registry.Register<UnaryKernel<Relu6Fn>>("Relu6", "CPU");
  registry.Register<UnaryKernel<LeakyReluFn>>("LeakyRelu", "CPU");
  registry.Register<UnaryKernel<EluFn>>("Elu", "CPU");
  registry.Register<UnaryKernel<SeluFn>>("Selu", "CPU");
  registry.Register<UnaryKernel<SigmoidFn>>("Sigmoid", "CPU");
  registry.Register<UnaryKernel<TanhFn>>("Tanh", "CPU");
  registry.Register<UnaryKernel<SoftplusFn>>("Softplus", "CPU");
  registry.Register<GradKernel<ReluGradFn>>("ReluGrad", "CPU");
  registry.Register<GradKernel<Relu6GradFn>>("Relu6Grad", "CPU");
  registry.Register<GradKernel<LeakyReluGradFn>>("LeakyReluGrad", "CPU");
  registry.Register<GradKernel<EluGradFn>>("EluGrad", "CPU");
  registry.Register<GradKernel<SeluGradFn>>("SeluGrad", "CPU");
  registry.Register<GradKernel<SoftplusGradFn>>("SoftplusGrad", "CPU");
  registry.Register<GradKernel<SigmoidGradFn>>("SigmoidGrad", "CPU");
  registry.Register<GradKernel<TanhGradFn>>("TanhGrad", "CPU");
}

}  // namespace cohort
