// Which of oneDNN's implementations our kernels get: none of those called "ref".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dnnl.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cohort/backends/cpu/kernels/batch_norm_call.h"
#include "cohort/backends/cpu/kernels/bfloat16_matmul.h"
#include "cohort/backends/cpu/kernels/convolution_call.h"
#include "cohort/backends/cpu/kernels/pooling_call.h"
#include "cohort/core/str_cat.h"

namespace cohort {
namespace {

constexpr int64_t kBatch = 64;

class ImplementationTest : public ::testing::TestWithParam<std::tuple<DType, cpu::Order>> {
 protected:
  void SetUp() override {
    if (!cpu::HasIsa(dnnl::cpu_isa::avx2)) GTEST_SKIP() << "this processor has no AVX2";
    if (cpu::HasIsa(dnnl::cpu_isa::avx512_core)) return;
    if (order_ == cpu::Order::kBlocked) GTEST_SKIP() << "blocks of 16 channels are AVX-512's";
  }

  // `images` are the arguments that may not change their order on the way.
  static void ExpectFast(const std::string& what, const cpu::OneDnnCall& call, const std::vector<int>& images = {}) {
    EXPECT_FALSE(call.is_reference()) << what << ": " << call.implementation();
    if (!cpu::HasIsa(dnnl::cpu_isa::avx512_core)) return;
    for (const int arg : images) EXPECT_FALSE(call.reorders(arg)) << what << ": " << call.implementation();
  }

  cpu::ConvolutionSpec Convolution(const Shape& input, const Shape& filter) const {
    cpu::ConvolutionSpec spec;
    spec.dtype = dtype_;
    spec.window.padding = "SAME";
    spec.input = input;
    spec.filter = filter;
    spec.output = Shape{input.dim(0), input.dim(1), input.dim(2), filter.dim(3)};
    spec.input_order = input.dim(3) % cpu::kChannelBlock == 0 ? order_ : cpu::Order::kChannelsLast;
    spec.output_order = order_;
    return spec;
  }

  // All calls of a convolution, alone and with a bias and an activation. Pixels need no gradient.
  static void CheckConvolution(const std::string& layer, const cpu::ConvolutionSpec& spec) {
    ExpectFast(layer, cpu::ConvolutionCall(spec), {DNNL_ARG_SRC, DNNL_ARG_DST});
    ExpectFast(layer + " filter gradient", cpu::FilterGradientCall(spec), {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST});
    cpu::ConvolutionSpec fused = spec;
    fused.bias = true;
    ExpectFast(layer + " filter and bias gradient", cpu::FilterGradientCall(fused), {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST});
    fused.activation = "Selu";
    ExpectFast(layer + " fused", cpu::ConvolutionCall(fused), {DNNL_ARG_SRC, DNNL_ARG_DST});
    if (spec.input.dim(3) == 1) return;
    ExpectFast(layer + " input gradient", cpu::InputGradientCall(spec), {DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST});
  }

  cpu::PoolSpec Pool(bool is_max, const Shape& input, int64_t size, int64_t stride, const std::string& padding) const {
    cpu::PoolSpec spec;
    spec.dtype = dtype_;
    spec.order = order_;
    spec.window.size = {size, size};
    spec.window.strides = {stride, stride};
    spec.window.padding = padding;
    spec.input = input;
    spec.output = ops::PooledShape(spec.window, input);
    spec.is_max = is_max;
    return spec;
  }

  static void CheckPool(const std::string& layer, cpu::PoolSpec spec) {
    ExpectFast(layer, cpu::PoolCall(spec));
    spec.places = spec.is_max;
    if (spec.places) ExpectFast(layer + " with places", cpu::PoolCall(spec));
    ExpectFast(layer + " gradient", cpu::PoolGradientCall(spec));
  }

  void CheckBatchNorm(const Shape& shape) const {
    for (const bool given : {false, true}) {
      const cpu::BatchNormSpec spec{dtype_, shape, order_, 1e-3f, given};
      const std::string name = StrCat("batch normalization of ", shape, given ? " by given statistics" : "");
      ExpectFast(name, cpu::BatchNormCall(spec));
      ExpectFast(name + " gradient", cpu::BatchNormGradientCall(spec));
    }
  }

  const DType dtype_ = std::get<0>(GetParam());
  const cpu::Order order_ = std::get<1>(GetParam());
};

// The convolutional layers of examples/fashion_mnist: a 3x3 convolution and five separable ones.
struct SeparableLayer {
  int64_t size;
  int64_t in;
  int64_t out;
};
constexpr SeparableLayer kSeparable[] = {{28, 128, 128}, {14, 128, 256}, {14, 256, 256}, {7, 256, 512}, {7, 512, 512}};
const std::pair<int64_t, int64_t> kPooled[] = {{28, 128}, {14, 256}, {7, 512}};  // rows, channels

TEST_P(ImplementationTest, ConvolutionsOfTheGuideNeedNoReference) {
  CheckConvolution("first convolution", Convolution({kBatch, 28, 28, 1}, {3, 3, 1, 128}));
  for (const SeparableLayer& l : kSeparable) {
    const Shape images{kBatch, l.size, l.size, l.in};
    const std::string name = StrCat(l.size, "x", l.size, ", ", l.in, " to ", l.out);
    CheckConvolution("depthwise " + name, Convolution(images, {3, 3, 1, l.in}));
    CheckConvolution("pointwise " + name, Convolution(images, {1, 1, l.in, l.out}));
  }
}

TEST_P(ImplementationTest, PoolsNeedNoReference) {
  for (const bool is_max : {true, false}) {
    const std::string kind = is_max ? "max pool of " : "average pool of ";
    for (const auto& [size, channels] : kPooled) {
      const Shape images{kBatch, size, size, channels};
      CheckPool(StrCat(kind, images), Pool(is_max, images, 2, 2, "VALID"));
      CheckPool(StrCat(kind, images, ", overlapping"), Pool(is_max, images, 3, 2, "SAME"));
      CheckPool(StrCat(kind, images, ", whole"), Pool(is_max, images, size, size, "VALID"));
    }
  }
}

TEST_P(ImplementationTest, BatchNormalizationNeedsNoReference) {
  for (const auto& [size, channels] : kPooled) CheckBatchNorm({kBatch, size, size, channels});
  CheckBatchNorm({kBatch, 1, 1, 512});  // behind a dense layer
}

// Channels that are no multiple of a vector, as where a network begins.
TEST_P(ImplementationTest, OddNumbersOfChannelsNeedNoReference) {
  if (order_ == cpu::Order::kBlocked) return;  // never has them
  for (const int64_t channels : {3, 6, 20}) {
    const Shape images{kBatch, 28, 28, channels};
    CheckBatchNorm(images);
    for (const bool is_max : {true, false}) {
      CheckPool(StrCat(is_max ? "max" : "average", " pool of ", images), Pool(is_max, images, 2, 2, "VALID"));
    }
    const cpu::ConvolutionSpec spec = Convolution(images, {3, 3, channels, 10});
    EXPECT_FALSE(cpu::ConvolutionCall(spec).is_reference()) << channels;
    EXPECT_FALSE(cpu::InputGradientCall(spec).is_reference()) << channels;
    EXPECT_FALSE(cpu::FilterGradientCall(spec).is_reference()) << channels;
  }
}

// What Keras's layers offer beyond the guide's.
TEST_P(ImplementationTest, OtherConvolutionsNeedNoReference) {
  if (order_ == cpu::Order::kBlocked) return;
  struct Kind {
    const char* name;
    int64_t channels;
    Shape filter;
    int64_t stride = 1;
    int64_t dilation = 1;
  };
  const Kind kinds[] = {{"depthwise, odd channels", 20, {3, 3, 1, 20}},
                        {"depthwise, multiplier 2", 16, {3, 3, 1, 32}},
                        {"groups", 32, {3, 3, 16, 64}},
                        {"stride 2", 32, {3, 3, 32, 64}, 2},
                        {"depthwise, stride 2", 32, {3, 3, 1, 32}, 2},
                        {"dilation 2", 32, {3, 3, 32, 64}, 1, 2},
                        {"depthwise, dilation 2", 32, {3, 3, 1, 32}, 1, 2}};
  for (const Kind& kind : kinds) {
    cpu::ConvolutionSpec spec = Convolution({kBatch, 28, 28, kind.channels}, kind.filter);
    spec.window.strides = {kind.stride, kind.stride};
    spec.window.dilations = {kind.dilation, kind.dilation};
    spec.output = Shape{kBatch, 28 / kind.stride, 28 / kind.stride, kind.filter.dim(3)};
    for (const cpu::OneDnnCall& call :
         {cpu::ConvolutionCall(spec), cpu::InputGradientCall(spec), cpu::FilterGradientCall(spec)}) {
      EXPECT_FALSE(call.is_reference()) << kind.name << ": " << call.implementation();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, ImplementationTest,
                         ::testing::Combine(::testing::Values(DType::kFloat32, DType::kBfloat16),
                                            ::testing::Values(cpu::Order::kChannelsLast, cpu::Order::kBlocked)),
                         [](const auto& info) {
                           return std::string(DTypeName(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) == cpu::Order::kBlocked ? "_blocked" : "_channels_last");
                         });

// Why blocks are not asked for there. It also shows that a reference implementation is seen.
TEST_P(ImplementationTest, BlocksAreReferenceWithoutAvx512) {
  if (cpu::HasIsa(dnnl::cpu_isa::avx512_core)) GTEST_SKIP() << "this processor has AVX-512";
  cpu::PoolSpec spec = Pool(false, {kBatch, 28, 28, 128}, 2, 2, "VALID");
  spec.order = cpu::Order::kBlocked;
  EXPECT_TRUE(cpu::PoolCall(spec).is_reference()) << cpu::PoolCall(spec).implementation();
}

// Products of float32 are dnnl_sgemm's, and softmax is our own: neither has a reference to fall to.
TEST(Bfloat16MatMulImplementationTest, DenseLayersAndTheirGradientsNeedNoReference) {
  if (!cpu::HasIsa(dnnl::cpu_isa::avx512_core)) GTEST_SKIP() << "oneDNN computes in bfloat16 with AVX-512 only";
  const std::pair<int64_t, int64_t> layers[] = {{4608, 512}, {512, 10}, {784, 128}};
  for (const int64_t batch : {int64_t{1}, kBatch, int64_t{0}}) {
    for (const auto& [given_in, given_out] : layers) {
      const int64_t in = batch == 0 ? 0 : given_in, out = batch == 0 ? 0 : given_out;  // 0: known at run time
      const std::string layer = StrCat("dense [", batch, ",", in, "] to ", out);
      EXPECT_NE(cpu::Bfloat16MatMul::Implementation({batch, out, in, false, false}), "") << layer;
      EXPECT_NE(cpu::Bfloat16MatMul::Implementation({batch, in, out, false, true}), "") << layer << " input gradient";
      EXPECT_NE(cpu::Bfloat16MatMul::Implementation({in, out, batch, true, false}), "") << layer << " weight gradient";
    }
  }
}

}  // namespace
}  // namespace cohort
