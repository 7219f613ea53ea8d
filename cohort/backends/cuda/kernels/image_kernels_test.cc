// Convolutions, pools, batch normalization and their gradients on the fake driver, compared with the CPU's kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cohort/backends/cuda/fake/compare.h"
#include "cohort/backends/cuda/libraries/dnn.h"
#include "cohort/core/testing/throws.h"
#include "cohort/device/logical_devices.h"
#include "cohort/graph/testing/activation_ops.h"
#include "cohort/ops/array.h"
#include "cohort/ops/convolution.h"
#include "cohort/ops/pooling.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using IntList = std::vector<int64_t>;

// The dtypes in which the CPU computes these ops.
constexpr DType kDTypesOfCpu[] = {DType::kFloat32, DType::kBfloat16};

Tensor SizesOf(const Shape& shape) {
  std::vector<int32_t> sizes;
  for (const int64_t dim : shape.dims()) sizes.push_back(static_cast<int32_t>(dim));
  return Tensor::Vector(sizes);
}

struct ConvolutionCase {
  const char* label;
  Shape input;
  Shape filter;
  ops::ConvolutionOptions options = {};
};

Output Convolve(Graph& graph, const std::string& op, const std::vector<Output>& inputs,
                const ops::ConvolutionOptions& o, const AttrMap& more = {}) {
  NodeBuilder builder = graph.Op(op);
  for (const Output& input : inputs) builder.Input(input);
  builder.Attr("strides", IntList{1, o.strides[0], o.strides[1], 1}).Attr("padding", o.padding).Attrs(more);
  builder.Attr("dilations", IntList{1, o.dilations[0], o.dilations[1], 1});
  if (o.padding == "EXPLICIT") {
    builder.Attr("explicit_paddings", IntList{0, 0, o.paddings[0], o.paddings[1], o.paddings[2], o.paddings[3], 0, 0});
  }
  return builder.Finish()->output(0);
}

// Compares all ops of a convolution.
void Compare(const ConvolutionCase& c, bool depthwise, DType dtype, const std::vector<std::string>& activations) {
  SCOPED_TRACE(StrCat(depthwise ? "depthwise " : "", c.label, " ", dtype));
  const std::string op = depthwise ? "DepthwiseConv2dNative" : "Conv2D";
  Graph graph;
  const Output x = ops::Placeholder(graph, dtype, c.input), w = ops::Placeholder(graph, dtype, c.filter);
  const Output y = Convolve(graph, op, {x, w}, c.options);
  const Output dy = ops::Placeholder(graph, dtype, y.shape());
  const Output x_sizes = ops::Placeholder(graph, DType::kInt32, Shape{4});
  const Output w_sizes = ops::Placeholder(graph, DType::kInt32, Shape{4});
  const Output b = ops::Placeholder(graph, dtype, Shape{y.shape().dim(3)});
  std::vector<Output> fetches = {y, Convolve(graph, op + "BackpropInput", {x_sizes, w, dy}, c.options),
                                 Convolve(graph, op + "BackpropFilter", {x, w_sizes, dy}, c.options)};
  for (const std::string& activation : activations) {
    fetches.push_back(Convolve(graph, "_Fused" + op, {x, w, b}, c.options, {{"activation", activation}}));
  }
  if (!depthwise) {
    const Output fused = Convolve(graph, "_FusedConv2DBackpropFilter", {x, w_sizes, dy}, c.options);
    fetches.push_back(fused);
    fetches.push_back(fused.node->output(1));
  }
  const std::vector<std::pair<Output, Tensor>> feeds = {
      {x, SomeValues(dtype, c.input, 1)},   {w, SomeValues(dtype, c.filter, 2)}, {dy, SomeValues(dtype, y.shape(), 3)},
      {b, SomeValues(dtype, b.shape(), 4)}, {x_sizes, SizesOf(c.input)},         {w_sizes, SizesOf(c.filter)}};
  const double products = static_cast<double>(c.filter.Sub(0, 3).num_elements());  // in a sum
  CompareWithCpu(graph, fetches, feeds, dtype == DType::kFloat32 ? 2e-5 + 4e-7 * products : 1.0 / 40);
}

TEST(ConvolutionKernelsTest, AgreeForAnyWindow) {
  const ConvolutionCase cases[] = {
      {"valid", {2, 5, 4, 3}, {3, 2, 3, 2}},
      {"one channel", {2, 7, 9, 1}, {3, 3, 1, 8}, {.padding = "SAME"}},
      {"one channel, odd", {1, 7, 6, 1}, {2, 3, 1, 3}, {.strides = {2, 1}, .padding = "SAME"}},
      {"point", {2, 3, 2, 4}, {1, 1, 4, 5}},
      {"point with strides", {2, 5, 4, 4}, {1, 1, 4, 6}, {.strides = {2, 3}}},
      {"strides", {1, 6, 7, 2}, {3, 3, 2, 3}, {.strides = {2, 3}, .padding = "SAME"}},
      {"more padding after", {2, 6, 8, 3}, {3, 3, 3, 4}, {.strides = {2, 2}, .padding = "SAME"}},
      {"even window", {2, 5, 5, 2}, {2, 4, 2, 3}, {.padding = "SAME"}},
      {"dilated", {1, 9, 8, 2}, {2, 3, 2, 3}, {.dilations = {2, 3}, .padding = "SAME"}},
      {"explicit", {1, 4, 3, 2}, {2, 3, 2, 2}, {.padding = "EXPLICIT", .paddings = {2, 1, 3, 1}}},
      {"explicit after",
       {1, 4, 3, 2},
       {3, 3, 2, 2},
       {.strides = {2, 2}, .padding = "EXPLICIT", .paddings = {0, 3, 1, 2}}},
      {"left over", {1, 8, 9, 3}, {3, 3, 3, 2}, {.strides = {3, 4}}},
      {"large", {2, 10, 11, 33}, {3, 3, 33, 35}, {.padding = "SAME"}},
      {"groups", {1, 4, 4, 4}, {3, 3, 2, 6}, {.padding = "SAME"}},
      {"groups of one", {1, 4, 4, 4}, {3, 3, 1, 8}, {.padding = "SAME"}},
      {"no images", {0, 4, 4, 2}, {3, 3, 2, 3}},
  };
  for (const ConvolutionCase& c : cases) {
    for (const DType dtype : kDTypesOfCpu) Compare(c, false, dtype, {"", "Relu", "Tanh"});
  }
}

TEST(ConvolutionKernelsTest, AgreeForEveryActivation) {
  std::vector<std::string> activations = ActivationOps();
  Compare({"window", {1, 4, 5, 2}, {2, 2, 2, 4}}, false, DType::kFloat32, activations);
  Compare({"point", {1, 4, 5, 2}, {1, 1, 2, 4}}, false, DType::kFloat32, activations);
  Compare({"depthwise", {1, 4, 5, 4}, {2, 2, 4, 1}}, true, DType::kFloat32, activations);
}

TEST(DepthwiseKernelsTest, AgreeForAnyWindow) {
  const ConvolutionCase cases[] = {
      {"valid", {2, 5, 4, 3}, {3, 2, 3, 1}},
      {"three by three", {2, 7, 9, 16}, {3, 3, 16, 1}, {.padding = "SAME"}},
      {"odd channels", {2, 6, 5, 5}, {3, 3, 5, 1}, {.padding = "SAME"}},
      {"strides", {1, 6, 7, 8}, {3, 3, 8, 1}, {.strides = {2, 2}, .padding = "SAME"}},
      {"unequal strides", {1, 6, 7, 2}, {3, 2, 2, 1}, {.strides = {1, 3}}},
      {"multiplier", {1, 4, 4, 2}, {2, 2, 2, 3}, {.padding = "SAME"}},
      {"multiplier of packs", {2, 5, 6, 3}, {3, 3, 3, 4}, {.padding = "SAME"}},
      {"dilated", {1, 9, 8, 4}, {3, 3, 4, 1}, {.dilations = {2, 3}, .padding = "SAME"}},
      {"explicit", {1, 4, 3, 4}, {2, 3, 4, 1}, {.padding = "EXPLICIT", .paddings = {2, 1, 3, 1}}},
      {"beyond the window", {1, 4, 4, 4}, {2, 2, 4, 1}, {.padding = "EXPLICIT", .paddings = {3, 4, 3, 2}}},
      {"point", {3, 3, 3, 4}, {1, 1, 4, 1}},
      {"many rows", {9, 30, 5, 300}, {3, 3, 300, 1}, {.padding = "SAME"}},
      {"no images", {0, 4, 4, 2}, {3, 3, 2, 1}},
  };
  for (const ConvolutionCase& c : cases) {
    for (const DType dtype : kDTypesOfCpu) Compare(c, true, dtype, {"", "Tanh"});
  }
}

TEST(ConvolutionKernelsTest, WhatDoesNotFitIsNamedAsOnTheCpu) {
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape::UnknownRank());
  const Output w = ops::Placeholder(graph, DType::kFloat32, Shape::UnknownRank());
  const Output y = ops::Conv2D(x, w);
  const Interpreter::Feeds feeds = {{x, SomeValues(DType::kFloat32, {1, 4, 4, 3}, 1)},
                                    {w, SomeValues(DType::kFloat32, {3, 3, 2, 1}, 1)}};
  const std::string error = ErrorOf([&] { RunOnGpu(graph, {y}, feeds); });
  EXPECT_THAT(error, HasSubstr("filter [3,3,2,1]"));
  EXPECT_EQ(error, ErrorOf([&] { Interpreter().Run1(y, feeds); }));
}

// Remembers whether the calls may round, and computes as the library does.
class RecordingDnn final : public cuda::Dnn {
 public:
  explicit RecordingDnn(cuda::Dnn& inner) : inner_(inner) {}
  cuda::LibraryName Name() override { return inner_.Name(); }
  std::vector<cuda::Algorithm> Candidates(int card, cuda::ConvolutionPart part, const cuda::DnnConvolution& convolution,
                                          size_t most) override {
    return inner_.Candidates(card, part, convolution, most);
  }
  std::optional<cuda::Algorithm> Check(int card, cuda::ConvolutionPart part, const cuda::DnnConvolution& convolution,
                                       const cuda::Algorithm& algorithm) override {
    return inner_.Check(card, part, convolution, algorithm);
  }
  void Compute(int card, cuda::StreamHandle stream, cuda::ConvolutionPart part, const cuda::DnnConvolution& convolution,
               const cuda::DnnOperands& operands, const cuda::Algorithm& algorithm, void* workspace) override {
    rounds[part] = convolution.tensor_float_32;
    inner_.Compute(card, stream, part, convolution, operands, algorithm, workspace);
  }
  std::map<cuda::ConvolutionPart, bool> rounds;

 private:
  cuda::Dnn& inner_;
};

TEST(ConvolutionKernelsTest, RoundToTensorFloat32OnlyIfTheConfigSaysSo) {
  RunOnGpu(Graph(), {}, {});  // installs the libraries
  cuda::Dnn& library = cuda::FindDnn();
  RecordingDnn recording(library);
  cuda::InstallDnn(&recording);
  const auto run = [&](DType dtype) {
    const Shape image{1, 4, 4, 2}, filter{3, 3, 2, 3}, result{1, 2, 2, 3};
    Graph graph;
    const Output x = ops::Placeholder(graph, dtype, image), w = ops::Placeholder(graph, dtype, filter);
    const Output dy = ops::Placeholder(graph, dtype, result);
    const Output x_sizes = ops::Placeholder(graph, DType::kInt32, Shape{4});
    const Output w_sizes = ops::Placeholder(graph, DType::kInt32, Shape{4});
    recording.rounds.clear();
    RunOnGpu(graph,
             {Convolve(graph, "Conv2D", {x, w}, {}), Convolve(graph, "Conv2DBackpropInput", {x_sizes, w, dy}, {}),
              Convolve(graph, "Conv2DBackpropFilter", {x, w_sizes, dy}, {})},
             {{x, SomeValues(dtype, image, 1)},
              {w, SomeValues(dtype, filter, 2)},
              {dy, SomeValues(dtype, result, 3)},
              {x_sizes, SizesOf(image)},
              {w_sizes, SizesOf(filter)}});
    return recording.rounds;
  };
  const auto all = [](bool rounds) {
    return std::map<cuda::ConvolutionPart, bool>{{cuda::ConvolutionPart::kOutput, rounds},
                                                 {cuda::ConvolutionPart::kInputGradient, rounds},
                                                 {cuda::ConvolutionPart::kFilterGradient, rounds}};
  };
  const bool before = config::TensorFloat32ExecutionEnabled();
  config::EnableTensorFloat32Execution(true);
  EXPECT_EQ(run(DType::kFloat32), all(true));
  EXPECT_EQ(run(DType::kBfloat16), all(false));
  config::EnableTensorFloat32Execution(false);
  EXPECT_EQ(run(DType::kFloat32), all(false));
  config::EnableTensorFloat32Execution(before);
  cuda::InstallDnn(&library);
}

struct PoolCase {
  const char* label;
  Shape input;
  ops::PoolOptions options;
};

NodeBuilder Pool(Graph& graph, const std::string& op, const std::vector<Output>& inputs, const ops::PoolOptions& o) {
  NodeBuilder builder = graph.Op(op);
  for (const Output& input : inputs) builder.Input(input);
  builder.Attr("ksize", IntList{1, o.size[0], o.size[1], 1}).Attr("strides", IntList{1, o.strides[0], o.strides[1], 1});
  builder.Attr("padding", o.padding);
  return builder;
}

void Compare(const PoolCase& c, DType dtype) {
  SCOPED_TRACE(StrCat(c.label, " ", dtype));
  Graph graph;
  const Output x = ops::Placeholder(graph, dtype, c.input);
  const Output largest = Pool(graph, "MaxPool", {x}, c.options).Finish1();
  const Output mean = Pool(graph, "AvgPool", {x}, c.options).Finish1();
  const Output dy = ops::Placeholder(graph, dtype, largest.shape()), dx = ops::Placeholder(graph, dtype, c.input);
  const Output sizes = ops::Placeholder(graph, DType::kInt32, Shape{4});
  const Output gradient = Pool(graph, "MaxPoolGrad", {x, largest, dy}, c.options).Finish1();
  const Output second = Pool(graph, "MaxPoolGradGrad", {x, largest, dx}, c.options).Finish1();
  const Output mean_gradient = Pool(graph, "AvgPoolGrad", {sizes, dy}, c.options).Finish1();
  Node* places = Pool(graph, "_MaxPoolWithPlaces", {x}, c.options).Finish();
  const Output at_places = Pool(graph, "_MaxPoolGradAtPlaces", {places->output(2), places->output(1), dy}, c.options)
                               .Attr("shape", c.input)
                               .Finish1();
  CompareWithCpu(graph, {largest, mean, gradient, second, mean_gradient, places->output(0), at_places},
                 {{x, SomeValues(dtype, c.input, 1)},
                  {dy, SomeValues(dtype, largest.shape(), 2)},
                  {dx, SomeValues(dtype, c.input, 3)},
                  {sizes, SizesOf(c.input)}});
}

TEST(PoolKernelsTest, Agree) {
  const PoolCase cases[] = {
      {"halves", {2, 6, 8, 3}, {.size = {2, 2}, .strides = {2, 2}}},
      {"overlapping", {2, 7, 6, 4}, {.size = {3, 3}, .strides = {2, 2}, .padding = "SAME"}},
      {"unequal", {1, 7, 8, 5}, {.size = {3, 2}, .strides = {1, 3}, .padding = "SAME"}},
      {"left over", {1, 7, 8, 2}, {.size = {2, 3}, .strides = {3, 4}}},
      {"gaps", {1, 7, 8, 2}, {.size = {1, 1}, .strides = {2, 3}, .padding = "SAME"}},
      {"whole image", {3, 5, 4, 2}, {.size = {5, 4}, .strides = {1, 1}}},
      {"no images", {0, 4, 4, 2}, {.size = {2, 2}, .strides = {2, 2}}},
  };
  for (const PoolCase& c : cases) {
    for (const DType dtype : kDTypesOfCpu) Compare(c, dtype);
  }
  // oneDNN finds wrong places in windows of more than 255 elements of bfloat16.
  Compare({"many places", {1, 18, 18, 2}, {.size = {17, 16}, .strides = {1, 1}, .padding = "SAME"}}, DType::kFloat32);
}

TEST(PoolKernelsTest, TheFirstOfEqualElementsGetsTheGradientAndNanIsLargest) {
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{1, 2, 4, 1});
  const Output y = Pool(graph, "MaxPool", {x}, {.size = {2, 2}, .strides = {2, 2}}).Finish1();
  const Output dy = ops::Placeholder(graph, DType::kFloat32, Shape{1, 1, 2, 1});
  const Output dx = Pool(graph, "MaxPoolGrad", {x, y, dy}, {.size = {2, 2}, .strides = {2, 2}}).Finish1();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Tensor values(DType::kFloat32, {1, 2, 4, 1});
  std::ranges::copy(std::vector<float>{3, 3, 9, nan, 3, 1, nan, 9}, values.data<float>());
  Tensor gradient(DType::kFloat32, {1, 1, 2, 1});
  std::ranges::copy(std::vector<float>{5, 7}, gradient.data<float>());
  const std::vector<Tensor> results = RunOnGpu(graph, {y, dx}, {{x, values}, {dy, gradient}});
  EXPECT_EQ(results[0].data<float>()[0], 3);
  EXPECT_TRUE(std::isnan(results[0].data<float>()[1]));
  EXPECT_EQ(results[1].ToVector<float>(), (std::vector<float>{5, 0, 0, 7, 0, 0, 0, 0}));
}

// Mean and variance as the op takes and gives them.
void CompareBatchNorm(const Shape& shape, DType dtype, bool training, float factor, double shift) {
  SCOPED_TRACE(StrCat(shape, " ", dtype, training ? " training " : " inference ", factor, " ", shift));
  const Shape channels{shape.dim(3)};
  const auto positive = [&](int seed) {
    Tensor values = SomeValues(DType::kFloat32, channels, seed);
    for (int64_t i = 0; i < channels.dim(0); ++i) values.data<float>()[i] = 0.5f + std::abs(values.data<float>()[i]);
    return values;
  };
  Tensor images = SomeValues(dtype, shape, 1);
  if (dtype == DType::kFloat32) {
    for (int64_t i = 0; i < images.num_elements(); ++i) images.data<float>()[i] += static_cast<float>(shift);
  }
  Graph graph;
  const Output x = ops::Placeholder(graph, dtype, shape), dy = ops::Placeholder(graph, dtype, shape);
  std::vector<Output> vectors;
  vectors.reserve(4);
  for (int i = 0; i < 4; ++i) vectors.push_back(ops::Placeholder(graph, DType::kFloat32, channels));
  NodeBuilder builder = graph.Op("FusedBatchNormV3");
  builder.Input(x);
  for (const Output& vector : vectors) builder.Input(vector);
  Node* norm =
      builder.Attr("is_training", training).Attr("epsilon", 0.01f).Attr("exponential_avg_factor", factor).Finish();
  Node* gradient = graph.Op("FusedBatchNormGradV3")
                       .Input(dy)
                       .Input(x)
                       .Input(vectors[0])
                       .Input(training ? norm->output(3) : vectors[2])
                       .Input(training ? norm->output(4) : vectors[3])
                       .Input(norm->output(5))
                       .Attr("is_training", training)
                       .Attr("epsilon", 0.01f)
                       .Finish();
  std::vector<Output> fetches;
  fetches.reserve(11);
  for (int i = 0; i < 6; ++i) fetches.push_back(norm->output(i));
  for (int i = 0; i < 5; ++i) fetches.push_back(gradient->output(i));
  CompareWithCpu(graph, fetches,
                 {{x, images},
                  {dy, SomeValues(dtype, shape, 2)},
                  {vectors[0], positive(3)},
                  {vectors[1], SomeValues(DType::kFloat32, channels, 4)},
                  {vectors[2], SomeValues(DType::kFloat32, channels, 5)},
                  {vectors[3], positive(6)}},
                 dtype == DType::kFloat32 ? 1e-4 : 1.0 / 32);
}

TEST(BatchNormKernelsTest, Agree) {
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{3, 5, 7, 8}, Shape{1, 1, 1, 4}, Shape{7, 20, 21, 3},
                             Shape{2, 2, 2, 300}, Shape{0, 2, 2, 3}}) {
    for (const DType dtype : kDTypesOfCpu) {
      CompareBatchNorm(shape, dtype, true, 1.0f, 0);
      CompareBatchNorm(shape, dtype, true, 0.125f, 0);
      CompareBatchNorm(shape, dtype, false, 1.0f, 0);
    }
  }
  CompareBatchNorm({4, 9, 9, 3}, DType::kFloat32, true, 1.0f, 100);
}

}  // namespace
}  // namespace cohort::testing
