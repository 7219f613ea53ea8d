// Matrix products, biases and their gradients, L2Loss and InTopK on the fake driver, compared with the CPU's kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "cohort/backends/cuda/fake/compare.h"
#include "cohort/backends/cuda/fake/fake_blas.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/cuda/libraries/blas.h"
#include "cohort/core/testing/throws.h"
#include "cohort/device/logical_devices.h"
#include "cohort/graph/testing/activation_ops.h"
#include "cohort/ops/array.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/nn.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;

constexpr DType kAllDTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16, DType::kInt32, DType::kInt64};
constexpr DType kFloatingDTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBfloat16};

struct Sizes {
  int64_t m, n, k;
};
constexpr Sizes kSizes[] = {{1, 1, 1},   {3, 5, 2},   {17, 16, 16}, {1, 130, 40}, {130, 1, 40},
                            {65, 33, 9}, {5, 7, 200}, {0, 3, 2},    {2, 0, 3},    {2, 3, 0}};

TEST(ProductKernelsTest, MatMulAgrees) {
  for (const DType dtype : kAllDTypes) {
    for (const auto& [m, n, k] : kSizes) {
      for (const int transposed : {0, 1, 2, 3}) {
        const bool ta = (transposed & 1) != 0, tb = (transposed & 2) != 0;
        SCOPED_TRACE(StrCat(dtype, " ", m, "x", n, "x", k, " ", ta, tb));
        const Tensor x = SomeValues(dtype, ta ? Shape{k, m} : Shape{m, k}, 1);
        const Tensor y = SomeValues(dtype, tb ? Shape{n, k} : Shape{k, n}, 2);
        Graph graph;
        const Output a = ops::Placeholder(graph, dtype, x.shape()), b = ops::Placeholder(graph, dtype, y.shape());
        CompareWithCpu(graph, {ops::MatMul(a, b, ta, tb)}, {{a, x}, {b, y}}, dtype == DType::kFloat32 ? 2e-5 : -1);
      }
    }
  }
}

TEST(ProductKernelsTest, BatchesBroadcast) {
  const std::pair<Shape, Shape> cases[] = {
      {{3, 4, 5}, {3, 5, 2}},       {{4, 5}, {3, 5, 2}}, {{2, 1, 3, 4, 5}, {7, 1, 5, 2}}, {{2, 3, 4, 5}, {3, 5, 2}},
      {{2, 3, 4, 5}, {1, 1, 5, 2}}, {{0, 4, 5}, {5, 2}}, {{2, 3, 4, 0}, {2, 3, 0, 2}},    {{1, 4, 5}, {5, 2}}};
  for (const DType dtype : kAllDTypes) {
    for (const auto& [shape_x, shape_y] : cases) {
      SCOPED_TRACE(StrCat(dtype, shape_x, shape_y));
      const Tensor x = SomeValues(dtype, shape_x, 1), y = SomeValues(dtype, shape_y, 2);
      Graph graph;
      const Output a = ops::Placeholder(graph, dtype, x.shape()), b = ops::Placeholder(graph, dtype, y.shape());
      CompareWithCpu(graph, {ops::BatchMatMul(a, b)}, {{a, x}, {b, y}});
    }
    const Tensor x = SomeValues(dtype, {2, 5, 4}, 1), y = SomeValues(dtype, {1, 3, 5}, 2);
    Graph graph;
    const Output a = ops::Placeholder(graph, dtype, x.shape()), b = ops::Placeholder(graph, dtype, y.shape());
    CompareWithCpu(graph, {ops::BatchMatMul(a, b, true, true)}, {{a, x}, {b, y}});
  }
}

TEST(ProductKernelsTest, MoreBatchesThanTheLibraryTakesAreSeveralCalls) {
  constexpr int64_t kBatches = cuda::GemmSpec::kMostBatches + 5;
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16}) {
    for (const Shape& shape_y : {Shape{kBatches, 3, 1}, Shape{3, 1}}) {
      SCOPED_TRACE(StrCat(dtype, shape_y));
      const Tensor x = SomeValues(dtype, {kBatches, 1, 3}, 1), y = SomeValues(dtype, shape_y, 2);
      Graph graph;
      const Output a = ops::Placeholder(graph, dtype, x.shape()), b = ops::Placeholder(graph, dtype, y.shape());
      CompareWithCpu(graph, {ops::BatchMatMul(a, b)}, {{a, x}, {b, y}});
    }
  }
}

// A library that computed max(x, 0) would hide a NaN.
TEST(ProductKernelsTest, ANanPassesThroughABiasAndRelu) {
  for (const DType dtype : kFloatingDTypes) {
    SCOPED_TRACE(dtype);
    const Tensor rows = Tensor::Vector<double>({1, 2, std::numeric_limits<double>::quiet_NaN(), 3});
    const Tensor y = SomeValues(dtype, {2, 8}, 2), z = SomeValues(dtype, {8}, 3);
    Graph graph;
    const Output a = ops::Placeholder(graph, DType::kFloat64, Shape{2, 2});
    const Output b = ops::Placeholder(graph, dtype, y.shape()), bias = ops::Placeholder(graph, dtype, z.shape());
    const Output x = ops::Cast(a, dtype);
    const Output fused = graph.Op("_FusedMatMul").Input(x).Input(b).Input(bias).Attr("activation", "Relu").Finish1();
    const Tensor result = RunOnGpu(graph, {fused}, {{a, rows.Reshaped({2, 2})}, {b, y}, {bias, z}})[0];
    for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(std::isnan(ValueAt(result, i)), i >= 8) << i;
  }
}

std::vector<std::string> ActivationsAndNone() {
  std::vector<std::string> names = ActivationOps();
  names.emplace_back();
  return names;
}

TEST(ProductKernelsTest, FusedProductsEndInEveryActivation) {
  RunOnGpu(Graph(), {}, {});  // installs the libraries
  // Only the fake knows which products it has ended with a bias and an activation.
  const auto* const fake = cuda::TestsRunOnCard() ? nullptr : &static_cast<cuda::FakeBlas&>(cuda::FindBlas());
  const auto ended = [&] { return fake == nullptr ? 0 : fake->calls_with_end(); };
  for (const DType dtype : kFloatingDTypes) {
    for (const std::string& activation : ActivationsAndNone()) {
      for (const auto& [m, n, k] : {Sizes{5, 7, 3}, Sizes{4, 8, 2}, Sizes{3, 4, 0}, Sizes{0, 3, 2}}) {
        SCOPED_TRACE(StrCat(dtype, " ", activation, " ", m, "x", n, "x", k));
        const Tensor x = SomeValues(dtype, {m, k}, 1), y = SomeValues(dtype, {k, n}, 2), z = SomeValues(dtype, {n}, 3);
        Graph graph;
        const Output a = ops::Placeholder(graph, dtype, x.shape()), b = ops::Placeholder(graph, dtype, y.shape());
        const Output bias = ops::Placeholder(graph, dtype, z.shape());
        const Output fused =
            graph.Op("_FusedMatMul").Input(a).Input(b).Input(bias).Attr("activation", activation).Finish1();
        const int before = ended();
        CompareWithCpu(graph, {fused}, {{a, x}, {b, y}, {bias, z}});
        const bool ends = dtype != DType::kFloat64 && (activation.empty() || activation == "Relu") && m > 0 && k > 0;
        EXPECT_EQ(ended() - before, ends && fake != nullptr ? 1 : 0);
      }
    }
  }
}

TEST(ProductKernelsTest, WhatDoesNotFitIsNamedAsOnTheCpu) {
  Graph graph;
  const Output a = ops::Placeholder(graph, DType::kFloat32, Shape::UnknownRank());
  const Output b = ops::Placeholder(graph, DType::kFloat32, Shape::UnknownRank());
  const Output product = ops::MatMul(a, b);
  const Interpreter::Feeds feeds = {{a, SomeValues(DType::kFloat32, {2, 3}, 1)},
                                    {b, SomeValues(DType::kFloat32, {4, 5}, 1)}};
  const std::string error = ErrorOf([&] { RunOnGpu(graph, {product}, feeds); });
  EXPECT_THAT(error, HasSubstr("inner dimensions 3 and 4 differ"));
  EXPECT_EQ(error, ErrorOf([&] { Interpreter().Run1(product, feeds); }));
}

// Remembers the last spec, and computes as the fake does.
class RecordingBlas final : public cuda::Blas {
 public:
  explicit RecordingBlas(cuda::Blas& inner) : inner_(inner) {}
  cuda::LibraryName Name() override { return inner_.Name(); }
  std::vector<cuda::Algorithm> Candidates(int card, const cuda::GemmSpec& spec, size_t most) override {
    return inner_.Candidates(card, spec, most);
  }
  std::optional<cuda::Algorithm> Check(int card, const cuda::GemmSpec& spec, const cuda::Algorithm& a) override {
    return inner_.Check(card, spec, a);
  }
  void Gemm(int card, cuda::StreamHandle stream, const cuda::GemmSpec& spec, const cuda::GemmOperands& operands,
            const cuda::Algorithm& algorithm, void* workspace) override {
    last = spec;
    inner_.Gemm(card, stream, spec, operands, algorithm, workspace);
  }
  cuda::GemmSpec last;

 private:
  cuda::Blas& inner_;
};

TEST(ProductKernelsTest, RoundsToTensorFloat32OnlyIfTheConfigSaysSo) {
  RunOnGpu(Graph(), {}, {});  // installs the libraries
  cuda::Blas& fake = cuda::FindBlas();
  RecordingBlas recording(fake);
  cuda::InstallBlas(&recording);
  const auto run = [&](DType dtype) {
    const Tensor x = SomeValues(dtype, {2, 3}, 1);
    Graph graph;
    const Output a = ops::Placeholder(graph, dtype, x.shape());
    RunOnGpu(graph, {ops::MatMul(a, a, false, true)}, {{a, x}});
    return recording.last.tensor_float_32;
  };
  const bool before = config::TensorFloat32ExecutionEnabled();
  EXPECT_EQ(before, !cuda::TestsRunOnCard());  // on by default, but off in tests on a card
  config::EnableTensorFloat32Execution(true);
  EXPECT_TRUE(run(DType::kFloat32));
  EXPECT_FALSE(run(DType::kFloat64));
  config::EnableTensorFloat32Execution(false);
  EXPECT_FALSE(run(DType::kFloat32));
  config::EnableTensorFloat32Execution(before);
  cuda::InstallBlas(&fake);
}

TEST(BiasKernelsTest, BiasesAndTheirGradientsAgree) {
  struct Case {
    Shape shape;
    const char* format;
  };
  const Case cases[] = {{{1, 1}, "NHWC"},    {{5, 3}, "NHWC"},       {{2, 3, 4, 8}, "NHWC"},   {{3, 300}, "NHWC"},
                        {{1000, 7}, "NHWC"}, {{2, 3, 4, 5}, "NCHW"}, {{2, 8, 3}, "NCHW"},      {{0, 3}, "NHWC"},
                        {{2, 3, 0}, "NCHW"}, {{20011, 1}, "NHWC"},   {{3, 32, 33, 33}, "NCHW"}};
  for (const DType dtype : kFloatingDTypes) {
    for (const auto& [shape, format] : cases) {
      SCOPED_TRACE(StrCat(dtype, shape, format));
      const int64_t channels = shape.dim(std::string(format) == "NCHW" ? 1 : shape.rank() - 1);
      const Tensor x = SomeValues(dtype, shape, 1), y = SomeValues(dtype, {channels}, 2);
      Graph graph;
      const Output value = ops::Placeholder(graph, dtype, x.shape()), bias = ops::Placeholder(graph, dtype, y.shape());
      const Output sum = ops::BiasAdd(value, bias, format);
      const Output gradient = graph.Op("BiasAddGrad").Input(value).Attr("data_format", format).Finish1();
      CompareWithCpu(graph, {sum, gradient}, {{value, x}, {bias, y}}, dtype == DType::kFloat32 ? 4e-5 : -1);
    }
  }
}

TEST(BiasKernelsTest, TheSameValuesGiveTheSameBits) {
  const Tensor x = SomeValues(DType::kFloat32, {5003, 37}, 1);
  Graph graph;
  const Output value = ops::Placeholder(graph, DType::kFloat32, x.shape());
  const Output gradient = graph.Op("BiasAddGrad").Input(value).Finish1();
  const std::vector<float> first = RunOnGpu(graph, {gradient}, {{value, x}})[0].ToVector<float>();
  EXPECT_EQ(RunOnGpu(graph, {gradient}, {{value, x}})[0].ToVector<float>(), first);
}

TEST(L2LossKernelTest, Agrees) {
  for (const DType dtype : kFloatingDTypes) {
    for (const int64_t n : {0, 1, 255, 257, 30011}) {
      SCOPED_TRACE(StrCat(dtype, " ", n));
      const Tensor x = SomeValues(dtype, {n}, 1);
      Graph graph;
      const Output value = ops::Placeholder(graph, dtype, x.shape());
      CompareWithCpu(graph, {ops::L2Loss(value)}, {{value, x}});
    }
  }
}

TEST(InTopKKernelTest, Agrees) {
  Tensor predictions = SomeValues(DType::kFloat32, {40, 9}, 1);
  predictions.data<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  for (int i = 0; i < 9; ++i) predictions.data<float>()[18 + i] = 0.5f;
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    const Tensor targets = SomeValues(dtype, {40}, 3);  // some of them are no classes
    Graph graph;
    const Output p = ops::Placeholder(graph, DType::kFloat32, predictions.shape());
    const Output t = ops::Placeholder(graph, dtype, targets.shape()), k = ops::Placeholder(graph, dtype, Shape{});
    const Output top = graph.Op("InTopKV2").Input(p).Input(t).Input(k).Finish1();
    const Tensor three = dtype == DType::kInt32 ? Tensor::Scalar<int32_t>(3) : Tensor::Scalar<int64_t>(3);
    CompareWithCpu(graph, {top}, {{p, predictions}, {t, targets}, {k, three}});
  }
}

}  // namespace
}  // namespace cohort::testing
