// Kernels that draw classes at random. The probabilities and the expected counts are TensorFlow's; the numbers come
// from a Philox generator, one call for each draw.
#include <cmath>
#include <memory>
#include <unordered_set>

#include "cohort/backends/cpu/kernels/register.h"
#include "cohort/backends/random_inputs.h"
#include "cohort/core/error.h"
#include "cohort/core/philox.h"
#include "cohort/device/kernel.h"

namespace cohort {
namespace {

struct LogUniformClasses {
  explicit LogUniformClasses(int64_t range) : range(range), log_range(std::log1p(static_cast<double>(range))) {}
  int64_t Draw(Philox& philox) const {
    const Philox::Result words = philox();
    const double value = std::exp(UniformDouble(words[0], words[1]) * log_range);
    const int64_t drawn = static_cast<int64_t>(value) - 1;
    return drawn < range ? drawn : range - 1;  // rounding
  }
  float Probability(int64_t c) const {
    const auto n = static_cast<double>(c);
    return static_cast<float>(std::log((n + 2.0) / (n + 1.0)) / log_range);
  }
  int64_t range;
  double log_range;
};

struct UniformClasses {
  explicit UniformClasses(int64_t range) : range(range) {}
  int64_t Draw(Philox& philox) const {
    const Philox::Result words = philox();
    const uint64_t bits = words[0] | uint64_t{words[1]} << 32;
    return static_cast<int64_t>(bits % static_cast<uint64_t>(range));
  }
  float Probability(int64_t) const { return 1.0f / static_cast<float>(range); }
  int64_t range;
};

template <typename Classes>
class SamplerKernel final : public OpKernel {
 public:
  explicit SamplerKernel(const KernelConstruction& c)
      : philox_(c),
        classes_(c.attr<int64_t>("range_max")),
        num_sampled_(c.attr<int64_t>("num_sampled")),
        num_true_(c.attr<int64_t>("num_true")),
        unique_(c.attr<bool>("unique")) {}

  void Compute(KernelContext& ctx) override {
    const Tensor& truth = ctx.input(0);
    if (truth.shape().rank() != 2 || truth.shape().dim(1) != num_true_) {
      throw InvalidArgumentError(StrCat("expected true_classes of shape [batch,", num_true_, "]; got ", truth.shape()));
    }
    if (unique_ && num_sampled_ > classes_.range) {
      throw InvalidArgumentError(StrCat("cannot draw ", num_sampled_, " different classes out of ", classes_.range));
    }
    Tensor& sampled = ctx.AllocateOutput(0, Shape{num_sampled_});
    const int64_t tries = Draw(ctx, sampled.data<int64_t>());
    Count(truth, tries, ctx.AllocateOutput(1, truth.shape()));
    Count(sampled, tries, ctx.AllocateOutput(2, sampled.shape()));
  }

 private:
  // Draws the classes, and returns how many draws it took. Seeds decide the numbers of each step, and not how many
  // draws the steps before it took.
  int64_t Draw(KernelContext& ctx, int64_t* out) {
    constexpr int64_t kCallsOfStep = int64_t{1} << 40;
    Philox philox = philox_.Reserve(ctx, kCallsOfStep);
    std::unordered_set<int64_t> seen;
    int64_t tries = 0;
    for (int64_t i = 0; i < num_sampled_; ++tries) {
      const int64_t drawn = classes_.Draw(philox);
      if (unique_ && !seen.insert(drawn).second) continue;
      out[i++] = drawn;
    }
    return tries;
  }

  void Count(const Tensor& of, int64_t tries, Tensor& counts) const {
    const int64_t* values = of.data<int64_t>();
    for (int64_t i = 0; i < of.num_elements(); ++i) {
      if (values[i] < 0 || values[i] >= classes_.range) {
        throw InvalidArgumentError(StrCat("true_classes[", i / num_true_, "][", i % num_true_, "] = ", values[i],
                                          " is not in [0, ", classes_.range, ")"));
      }
      const float p = classes_.Probability(values[i]);
      // As in TensorFlow: if classes were drawn anew, each class comes at most once, in some of the tries. If none was,
      // the expected number is that of draws which may repeat, even if `unique` is set.
      counts.data<float>()[i] =
          tries == num_sampled_
              ? p * static_cast<float>(num_sampled_)
              : static_cast<float>(-std::expm1(static_cast<double>(tries) * std::log1p(-static_cast<double>(p))));
    }
  }

  GuardedPhilox philox_;
  const Classes classes_;
  const int64_t num_sampled_;
  const int64_t num_true_;
  const bool unique_;
};

}  // namespace

void RegisterCandidateSamplingKernels(KernelRegistry& registry) {
  registry.Register<SamplerKernel<LogUniformClasses>>("LogUniformCandidateSampler", "CPU");
  registry.Register<SamplerKernel<UniformClasses>>("UniformCandidateSampler", "CPU");
}

}  // namespace cohort
