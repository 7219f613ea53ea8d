// Kernels of ops/local_response.h. They take one pixel after another: the sums of a pixel's squares over the windows of
// its channels come from running sums in double, so that a window costs the same for every radius.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "cohort/backends/cpu/kernels/loops.h"
#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/device/kernel.h"

namespace cohort {
namespace {

constexpr int64_t kCostOfElement = 60;  // a power, in simple operations

struct Normalization {
  explicit Normalization(const KernelConstruction& c)
      : radius(c.attr<int64_t>("depth_radius")),
        bias(c.attr<float>("bias")),
        alpha(c.attr<float>("alpha")),
        beta(c.attr<float>("beta")) {}
  int64_t radius;
  double bias, alpha, beta;
};

// Calls fn(c, sum of values(d)) for each channel c, where d are the channels at most `radius` away from c. `sums` is
// space for channels + 1 numbers.
template <typename Values, typename Fn>
void ForWindows(int64_t channels, int64_t radius, std::vector<double>& sums, const Values& values, const Fn& fn) {
  sums[0] = 0;
  for (int64_t c = 0; c < channels; ++c) sums[static_cast<size_t>(c + 1)] = sums[static_cast<size_t>(c)] + values(c);
  radius = std::min(radius, channels);
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t first = std::max<int64_t>(c - radius, 0), end = std::min(c + radius + 1, channels);
    fn(c, sums[static_cast<size_t>(end)] - sums[static_cast<size_t>(first)]);
  }
}

// Calls fn(first element of a pixel, number of channels, space for channels + 1 numbers) for each pixel.
template <typename Fn>
void ForPixels(const Tensor& image, int threads, const Fn& fn) {
  if (image.shape().rank() != 4) {
    throw InvalidArgumentError(StrCat("expected images [batch, rows, columns, channels]; got ", image.shape()));
  }
  const int64_t channels = image.shape().dim(3);
  if (image.num_elements() == 0) return;
  cpu::ForBlocks(
      image.num_elements() / channels, threads,
      [&](int64_t begin, int64_t end) {
        std::vector<double> sums(static_cast<size_t>(channels) + 1);
        for (int64_t i = begin; i < end; ++i) fn(i * channels, channels, sums);
      },
      channels * kCostOfElement);
}

template <typename T>
class LRNKernel final : public OpKernel {
 public:
  explicit LRNKernel(const KernelConstruction& c) : by_(c) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    Tensor& out = ctx.AllocateOutput(0, input.shape());
    ForPixels(input, ctx.num_threads(), [&](int64_t pixel, int64_t channels, std::vector<double>& sums) {
      const T* x = input.data<T>() + pixel;
      T* y = out.data<T>() + pixel;
      const auto square = [&](int64_t c) {
        const auto value = static_cast<double>(static_cast<float>(x[c]));
        return value * value;
      };
      ForWindows(channels, by_.radius, sums, square, [&](int64_t c, double sum) {
        y[c] = static_cast<T>(
            static_cast<float>(static_cast<float>(x[c]) * std::pow(by_.bias + by_.alpha * sum, -by_.beta)));
      });
    });
  }

 private:
  const Normalization by_;
};

// With the divisor's base n[c] = bias + alpha * (sum over the window of c), the gradient is
//   g[c] * n[c]^-beta - 2 * alpha * beta * x[c] * sum over the window of g * y / n.
template <typename T>
class LRNGradKernel final : public OpKernel {
 public:
  explicit LRNGradKernel(const KernelConstruction& c) : by_(c) {}
  void Compute(KernelContext& ctx) override {
    const Tensor& grads = ctx.input(0);
    const Tensor& input = ctx.input(1);
    const Tensor& output = ctx.input(2);
    if (grads.shape() != input.shape() || output.shape() != input.shape()) {
      throw InvalidArgumentError(StrCat("expected three tensors of one shape; got ", grads.shape(), ", ", input.shape(),
                                        " and ", output.shape()));
    }
    Tensor& out = ctx.AllocateOutput(0, input.shape());
    ForPixels(input, ctx.num_threads(), [&](int64_t pixel, int64_t channels, std::vector<double>& sums) {
      Pixel(grads.data<T>() + pixel, input.data<T>() + pixel, output.data<T>() + pixel, channels, sums,
            out.data<T>() + pixel);
    });
  }

 private:
  void Pixel(const T* g, const T* x, const T* y, int64_t channels, std::vector<double>& sums, T* to) const {
    const auto number = [](T value) { return static_cast<double>(static_cast<float>(value)); };
    std::vector<double> bases(static_cast<size_t>(channels));
    ForWindows(
        channels, by_.radius, sums, [&](int64_t c) { return number(x[c]) * number(x[c]); },
        [&](int64_t c, double sum) { bases[static_cast<size_t>(c)] = by_.bias + by_.alpha * sum; });
    ForWindows(
        channels, by_.radius, sums,
        [&](int64_t c) { return number(g[c]) * number(y[c]) / bases[static_cast<size_t>(c)]; },
        [&](int64_t c, double sum) {
          const double own = number(g[c]) * std::pow(bases[static_cast<size_t>(c)], -by_.beta);
          to[c] = static_cast<T>(static_cast<float>(own - 2 * by_.alpha * by_.beta * number(x[c]) * sum));
        });
  }

  const Normalization by_;
};

template <template <typename> class Kernel>
std::unique_ptr<OpKernel> Make(const KernelConstruction& c) {
  if (c.attr<DType>("T") == DType::kBfloat16) return std::make_unique<Kernel<bfloat16>>(c);
  return std::make_unique<Kernel<float>>(c);
}

}  // namespace

void RegisterLocalResponseKernels(KernelRegistry& registry) {
  registry.Register("LRN", "CPU", Make<LRNKernel>);
  registry.Register("LRNGrad", "CPU", Make<LRNGradKernel>);
}

}  // namespace cohort
