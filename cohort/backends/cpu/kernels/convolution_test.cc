#include "cohort/ops/convolution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/backends/cpu/kernels/convolution_call.h"
#include "cohort/backends/cpu/kernels/onednn.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/testing/activation_ops.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/normalization.h"
#include "cohort/ops/pooling.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using testing::Interpreter;

Tensor SineWave(const Shape& shape, int seed) {
  Tensor tensor(DType::kFloat32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.data<float>()[i] = std::sin(static_cast<float>(i + seed));
  return tensor;
}

// The formula, in float64; padding SAME.
std::vector<double> Convolved(const Tensor& x, const Tensor& w, const ops::ConvolutionOptions& o) {
  const int64_t rows = x.shape().dim(1), columns = x.shape().dim(2), in = w.shape().dim(2), out = w.shape().dim(3);
  const auto extent = [](int64_t length, int64_t size, int64_t stride, int64_t dilation) {
    const int64_t count = (length + stride - 1) / stride;
    const int64_t padding = std::max<int64_t>(0, (count - 1) * stride + (size - 1) * dilation + 1 - length);
    return std::pair(count, padding / 2);
  };
  const auto [high, top] = extent(rows, w.shape().dim(0), o.strides[0], o.dilations[0]);
  const auto [wide, left] = extent(columns, w.shape().dim(1), o.strides[1], o.dilations[1]);
  std::vector<double> y;
  for (int64_t b = 0; b < x.shape().dim(0); ++b) {
    for (int64_t r = 0; r < high; ++r) {
      for (int64_t c = 0; c < wide; ++c) {
        for (int64_t k = 0; k < out; ++k) {
          double sum = 0;
          for (int64_t i = 0; i < w.shape().dim(0); ++i) {
            for (int64_t j = 0; j < w.shape().dim(1); ++j) {
              const int64_t row = r * o.strides[0] - top + i * o.dilations[0];
              const int64_t column = c * o.strides[1] - left + j * o.dilations[1];
              if (row < 0 || row >= rows || column < 0 || column >= columns) continue;
              for (int64_t n = 0; n < in; ++n) {
                sum += static_cast<double>(x.data<float>()[((b * rows + row) * columns + column) * in + n]) *
                       static_cast<double>(w.data<float>()[((i * w.shape().dim(1) + j) * in + n) * out + k]);
              }
            }
          }
          y.push_back(sum);
        }
      }
    }
  }
  return y;
}

TEST(Conv2DTest, AgreesWithTheFormulaForAnyShapeAndTeam) {
  for (const int threads : {1, 2}) {
    for (const ops::ConvolutionOptions& o :
         {ops::ConvolutionOptions{.padding = "SAME"}, ops::ConvolutionOptions{.strides = {2, 1}, .padding = "SAME"},
          ops::ConvolutionOptions{.dilations = {1, 2}, .padding = "SAME"}}) {
      for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{{1, 16}, {3, 5}, {16, 32}, {20, 7}}) {
        Graph graph;
        const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{-1, -1, -1, in});
        const Output w = ops::Placeholder(graph, DType::kFloat32, Shape{-1, -1, in, out});
        const Output y = ops::Conv2D(x, w, o);
        Interpreter interpreter(threads);
        for (const int64_t batch : {1, 3}) {  // one kernel, several shapes
          const Tensor images = SineWave(Shape{batch, 9, 8, in}, 1), filter = SineWave(Shape{3, 2, in, out}, 2);
          const std::vector<float> values = interpreter.Run1(y, {{x, images}, {w, filter}}).ToVector<float>();
          const std::vector<double> expected = Convolved(images, filter, o);
          ASSERT_EQ(values.size(), expected.size());
          for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], 2e-5) << in << " " << i;
        }
      }
    }
  }
}

TEST(Conv2DTest, WhatDoesNotFitIsNamed) {
  Graph graph;
  const auto images = [&](const Shape& shape) { return ops::Placeholder(graph, DType::kFloat32, shape); };
  const Output x = images({2, 5, 5, 3});
  EXPECT_THAT(ErrorOf([&] { ops::Conv2D(x, images({3, 3, 2, 4})); }), HasSubstr("3 channels"));
  EXPECT_THAT(ErrorOf([&] { ops::Conv2D(x, images({6, 3, 3, 4})); }), HasSubstr("at least 6 rows"));
  EXPECT_THAT(ErrorOf([&] { ops::Conv2D(x, images({3, 3, 3})); }), HasSubstr("rank 4"));
  EXPECT_THAT(ErrorOf([&] { ops::Conv2D(x, images({3, 3, 3, 4}), {.strides = {0, 1}}); }), HasSubstr("[1,0,1,1]"));
  EXPECT_THAT(ErrorOf([&] { ops::DepthwiseConv2dNative(x, images({3, 3, 4, 1})); }), HasSubstr("3 channels"));
  EXPECT_THAT(ErrorOf([&] { ops::MaxPool(x, {.size = {2, 7}}); }), HasSubstr("at least 7 columns"));
  EXPECT_THAT(ErrorOf([&] {
                graph.Op("Conv2D")
                    .Input(x)
                    .Input(images({3, 3, 3, 4}))
                    .Attr("strides", std::vector<int64_t>{1, 1, 1, 1})
                    .Attr("padding", "SAME")
                    .Attr("data_format", "NCHW")
                    .Finish();
              }),
              HasSubstr("expected data_format NHWC; got NCHW"));
}

TEST(Conv2DTest, WhatDoesNotFitInAStepIsNamed) {
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape::UnknownRank());
  const Output w = ops::Placeholder(graph, DType::kFloat32, Shape::UnknownRank());
  const Output y = ops::Conv2D(x, w);
  const auto run = [&](const Shape& images, const Shape& filter) {
    return ErrorOf([&] { Interpreter().Run1(y, {{x, SineWave(images, 1)}, {w, SineWave(filter, 1)}}); });
  };
  EXPECT_THAT(run({1, 4, 4, 3}, {3, 3, 2, 1}), HasSubstr("filter [3,3,2,1]"));
  EXPECT_THAT(run({1, 4, 4}, {3, 3, 2, 1}), HasSubstr("got [1,4,4]"));
  EXPECT_THAT(run({1, 2, 4, 2}, {3, 3, 2, 1}), HasSubstr("at least 3 rows"));
  EXPECT_EQ(run({1, 4, 4, 2}, {3, 3, 2, 1}), "no error");
}

// Returns op(x, w) and its gradients by x and w, as float32. The operands have `dtype`, but values of bfloat16.
std::vector<Tensor> ValuesAndGradients(const std::function<Output(Output, Output)>& op, const Shape& filter,
                                       DType dtype) {
  Graph graph;
  const auto operand = [&](const Shape& shape, int seed) {
    return ops::Cast(ops::Cast(ops::Const(graph, SineWave(shape, seed)), DType::kBfloat16), dtype);
  };
  const Output x = operand({2, 6, 5, 3}, 1), w = operand(filter, 2);
  const Output y = op(x, w);
  const std::vector<Gradient> gradients = Gradients({y}, {x, w}, {operand(y.shape(), 3)});
  std::vector<Output> results = {ops::Cast(y, DType::kFloat32)};
  for (const Gradient& gradient : gradients) {
    if (gradient.exists()) results.push_back(ops::Cast(gradient.values, DType::kFloat32));
  }
  return Interpreter(2).Run(results);
}

// Without AVX-512 the kernels compute in float32 and round once. With AVX-512 oneDNN computes in bfloat16. On some
// processors it then rounds each part of a sum, such as the gradients of windows that overlap.
TEST(Bfloat16ImagesTest, AreAsFloat32ButForTheirRounding) {
  const bool rounds_parts = cpu::HasIsa(dnnl::cpu_isa::avx512_core);
  const auto normalized = [](Output x, Output) {
    const auto channels = [&](float value) { return ops::Const(x.graph(), std::vector<float>(3, value)); };
    return ops::FusedBatchNorm(x, channels(2), channels(1), channels(0), channels(1), {.epsilon = 0.1f}).y;
  };
  const std::vector<std::pair<Shape, std::function<Output(Output, Output)>>> ops = {
      {{3, 2, 3, 4}, [](Output x, Output w) { return ops::Conv2D(x, w, {.padding = "SAME"}); }},
      {{3, 2, 3, 1},
       [](Output x, Output w) {
         return ops::Conv2D(x, w, {.strides = {2, 1}});
       }},
      {{3, 2, 3, 2}, [](Output x, Output w) { return ops::DepthwiseConv2dNative(x, w); }},
      {{1},
       [](Output x, Output) {
         return ops::MaxPool(x, {.size = {2, 2}, .strides = {2, 2}});
       }},
      {{1},
       [](Output x, Output) {
         return ops::AvgPool(x, {.size = {3, 2}, .strides = {2, 1}});
       }},
      {{1}, normalized}};
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::vector<Tensor> narrow = ValuesAndGradients(ops[i].second, ops[i].first, DType::kBfloat16);
    const std::vector<Tensor> wide = ValuesAndGradients(ops[i].second, ops[i].first, DType::kFloat32);
    ASSERT_EQ(narrow.size(), wide.size());
    for (size_t k = 0; k < wide.size(); ++k) {
      const float* values = wide[k].data<float>();
      float largest = 0;
      for (int64_t n = 0; n < wide[k].num_elements(); ++n) largest = std::max(largest, std::abs(values[n]));
      for (int64_t n = 0; n < wide[k].num_elements(); ++n) {
        const float tolerance = (rounds_parts ? largest : std::abs(values[n])) / 256 + 1e-6f;
        ASSERT_NEAR(narrow[k].data<float>()[n], values[n], tolerance) << i << " " << k << " " << n;
      }
    }
  }
}

// Fused as one by one; what is not finite stays that, and NaN stays NaN unless oneDNN applies the activation.
TEST(FusedConv2DTest, EndsInEveryActivation) {
  std::vector<std::string> activations = testing::ActivationOps();
  activations.emplace_back();  // none
  for (const std::string& activation : activations) {
    Graph graph;
    Tensor images = SineWave(Shape{1, 4, 4, 1}, 1);
    for (int64_t i = 0; i < 8; ++i) images.data<float>()[i] *= 40;
    images.data<float>()[9] = std::nanf("");
    images.data<float>()[13] = INFINITY;
    images.data<float>()[14] = -INFINITY;
    const Output x = ops::Const(graph, images), w = ops::Const(graph, SineWave(Shape{1, 1, 1, 16}, 2));
    const Output b = ops::Const(graph, SineWave(Shape{16}, 3));
    const auto convolution = [&](const char* op) {
      NodeBuilder builder = graph.Op(op);
      return builder.Input(x).Input(w).Attr("strides", std::vector<int64_t>{1, 1, 1, 1}).Attr("padding", "SAME");
    };
    Output apart = graph.Op("BiasAdd").Input(convolution("Conv2D").Finish1()).Input(b).Finish1();
    if (!activation.empty()) apart = graph.Op(activation).Input(apart).Finish1();
    const Output fused = convolution("_FusedConv2D").Input(b).Attr("activation", activation).Finish1();
    const std::vector<Tensor> values = Interpreter().Run({fused, apart});
    for (int64_t i = 0; i < values[0].num_elements(); ++i) {
      const float got = values[0].data<float>()[i], expected = values[1].data<float>()[i];
      if (std::isfinite(expected)) {
        ASSERT_NEAR(got, expected, 1e-5 * (1 + std::abs(expected))) << activation << " at " << i;
      } else {
        EXPECT_FALSE(std::isfinite(got)) << activation << " at " << i << ": " << got;
        if (cpu::CanEndIn(activation)) continue;
        EXPECT_EQ(std::isnan(got), std::isnan(expected)) << activation << " at " << i << ": " << got;
      }
    }
  }
}

TEST(FusedBatchNormTest, EmptyBatchesAndWrongChannels) {
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape::UnknownRank());
  const Output c = ops::Placeholder(graph, DType::kFloat32, Shape::UnknownRank());
  const ops::BatchNorm norm = ops::FusedBatchNorm(x, c, c, c, c);
  const std::vector<Tensor> empty =
      Interpreter().Run({norm.y, norm.mean}, {{x, SineWave({0, 2, 2, 3}, 1)}, {c, SineWave({3}, 1)}});
  EXPECT_EQ(empty[0].shape(), (Shape{0, 2, 2, 3}));
  EXPECT_TRUE(std::isnan(empty[1].data<float>()[0]));
  EXPECT_THAT(ErrorOf([&] {
                Interpreter().Run1(norm.y, {{x, SineWave({1, 2, 2, 3}, 1)}, {c, SineWave({4}, 1)}});
              }),
              HasSubstr("scale of shape [3]; got [4]"));
}

}  // namespace
}  // namespace cohort
