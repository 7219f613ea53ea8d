#include "cohort/backends/cpu/passes/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "cohort/device/kernel.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/convolution.h"
#include "cohort/ops/math.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/normalization.h"
#include "cohort/ops/pooling.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/testing/device_kinds.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Output Images(Graph& g, const Shape& shape, const std::string& name = "x") {
  return ops::Placeholder(g, DType::kFloat32, shape, name);
}

std::vector<std::string> NamesOf(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& [node, index] : BlockedValues(graph)) names.push_back(node->name());
  return names;
}

TEST(LayoutTest, WhatFollowsAConvolutionStaysInBlocks) {
  Graph g;
  const Output x = Images(g, {-1, 8, 8, 1});
  const Output a = ops::Relu(ops::Conv2D(x, Images(g, {3, 3, 1, 32}, "w"), {}, "first"), "relu");
  const Output b = ops::Conv2D(a, Images(g, {1, 1, 32, 32}, "v"), {}, "second");
  const Output sum =
      g.Op("AddV2").Name("sum").Input(ops::MaxPool(a + b, {}, "pool")).Input(ops::Const(g, 1.0f)).Finish1();
  ops::Reshape(sum, {-1, 3 * 3 * 32});
  EXPECT_THAT(NamesOf(g), UnorderedElementsAre("first", "relu", "second", "AddV2", "pool", "sum"));
}

TEST(LayoutTest, WhatDoesNotFitStaysAsItIs) {
  Graph g;
  const Output x = Images(g, {-1, 8, 8, 32});
  ops::Conv2D(x, Images(g, {3, 3, 32, 10}), {}, "ten_channels");
  ops::Conv2D(x, Images(g, {3, 3, 16, 32}), {}, "two_groups");
  ops::Conv2D(Images(g, {-1, 8, 8, 20}), Images(g, {3, 3, 20, 32}), {}, "from_twenty");
  ops::Conv2D(Images(g, Shape::UnknownRank()), Images(g, Shape::UnknownRank()), {}, "unknown");
  ops::DepthwiseConv2dNative(x, Images(g, {3, 3, 32, 2}), {}, "multiplier");
  ops::DepthwiseConv2dNative(x, Images(g, {5, 5, 32, 1}), {}, "five_rows");
  ops::DepthwiseConv2dNative(x, Images(g, {3, 3, 32, 1}), {.dilations = {2, 2}}, "dilated");
  ops::MaxPool(ops::Relu(x));
  EXPECT_THAT(NamesOf(g), IsEmpty());
  const Output fits = ops::Conv2D(x, Images(g, {1, 1, 32, 32}), {}, "fits");
  g.Op("AddV2").Name("along_rows").Input(fits).Input(Images(g, {-1, 1, 8, 32})).Finish();
  g.Op("AddV2").Name("along_batch").Input(fits).Input(Images(g, {1, 8, 8, 32})).Finish();
  g.Op("AddV2").Name("vector").Input(fits).Input(Images(g, {32})).Finish();
  g.Op("Cast").Name("cast").Input(fits).Attr("DstT", DType::kInt32).Finish();
  EXPECT_THAT(NamesOf(g), UnorderedElementsAre("fits", "along_batch"));
}

TEST(LayoutTest, ValuesChangeTheirOrderOnceForAllReaders) {
  if (!KernelRegistry::Global().Has("_ToBlocked", "CPU")) GTEST_SKIP() << "blocks of 16 channels are AVX-512's";
  Graph g;
  const Output x = Images(g, {-1, 8, 8, 32});
  const Output y = ops::Conv2D(x, Images(g, {1, 1, 32, 16}), {}, "y");
  ops::Conv2D(x, Images(g, {1, 1, 32, 16}), {}, "z");
  ops::Reshape(y, {-1});
  ops::Sum(y);
  ops::Relu(y, "relu");
  ops::ShapeOf(ops::Conv2D(x, Images(g, {1, 1, 32, 16}), {}, "only_its_shape"));
  ChooseOrders(g, "CPU");
  std::map<std::string, int> counts;
  for (const Node* node : g.nodes()) ++counts[node->op_name()];
  EXPECT_EQ(counts["_ToBlocked"], 1);
  EXPECT_EQ(counts["_FromBlocked"], 1);
  EXPECT_TRUE(g.FindNode("y")->attr<bool>("_blocked_in") && g.FindNode("y")->attr<bool>("_blocked_out"));
  EXPECT_EQ(g.FindNode("y")->input(0).node->op_name(), "_ToBlocked");
  EXPECT_EQ(g.FindNode("relu")->input(0).node->name(), "y");
  EXPECT_EQ(g.FindNode("Shape")->input(0).node->name(), "only_its_shape");
}

// Numbers of bfloat16, of a size that keeps layers' outputs about as large as their inputs.
Tensor Values(const Shape& shape, int seed, DType dtype) {
  const auto fan_in = static_cast<float>(shape.rank() == 4 ? shape.Sub(0, 3).num_elements() : 4);
  const float scale = seed == 0 ? 1.0f : 1.4f / std::sqrt(fan_in);
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const bfloat16 value(scale * std::sin(static_cast<float>(i * 7 + seed)));
    if (dtype == DType::kFloat32)
      tensor.data<float>()[i] = static_cast<float>(value);
    else
      tensor.data<bfloat16>()[i] = value;
  }
  return tensor;
}

// Every kind of layer, with gradients by everything; fed weights.
struct ImageNetwork {
  Graph g;
  testing::Interpreter::Feeds feeds;
  std::vector<Output> fetches;

  explicit ImageNetwork(DType dtype) : dtype_(dtype) {
    const Output x = Feed({3, 12, 12, 1}, Shape{-1, 12, 12, 1});
    Output h = ops::Selu(Conv(x, 1, 32, "SAME"));
    Output shortcut = h;
    h = ops::DepthwiseConv2dNative(h, Feed({3, 3, 32, 1}), {.padding = "SAME"});
    h = Biased(ops::Conv2D(h, Feed({1, 1, 32, 32})), 32);
    h = ops::Tanh(h) + shortcut;
    h = ops::MaxPool(h);
    h = Normalized(h, 32);
    h = ops::Relu(Conv(h, 32, 48, "SAME"));
    h = ops::AvgPool(h, {.size = {3, 3}, .strides = {2, 2}, .padding = "SAME"});
    h = Conv(h, 48, 10, "VALID");  // in channels' order
    const Output loss = ops::Sum(ops::Square(ops::Cast(h, DType::kFloat32)));
    std::vector<Output> sources;
    for (const auto& [placeholder, value] : feeds) sources.push_back(placeholder);
    fetches = {loss, h, shortcut};
    for (const Gradient& gradient : Gradients({loss}, sources)) fetches.push_back(gradient.values);
  }

 private:
  Output Feed(const Shape& shape, Shape known = Shape::UnknownRank(), DType dtype = DType::kInvalid) {
    if (dtype == DType::kInvalid) dtype = dtype_;
    if (!known.has_rank()) known = shape;
    const int seed = static_cast<int>(feeds.size());
    feeds.emplace_back(ops::Placeholder(g, dtype, known), Values(shape, seed, dtype));
    return feeds.back().first;
  }
  Output Biased(Output x, int64_t channels) { return ops::BiasAdd(x, Feed({channels})); }
  Output Conv(Output x, int64_t in, int64_t out, const std::string& padding) {
    return Biased(ops::Conv2D(x, Feed({3, 3, in, out}), {.padding = padding}), out);
  }
  Output Normalized(Output x, int64_t channels) {
    const auto vector = [&] { return Feed({channels}, Shape::UnknownRank(), DType::kFloat32); };
    const Output scale = vector(), offset = vector();
    const Output nothing = ops::Const(g, std::vector<float>{});
    return ops::FusedBatchNorm(x, scale, offset, nothing, nothing).y;
  }
  const DType dtype_;
};

std::vector<double> AsDoubles(const Tensor& value) {
  std::vector<double> result;
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    result.push_back(value.dtype() == DType::kFloat32
                         ? static_cast<double>(value.data<float>()[i])
                         : static_cast<double>(static_cast<float>(value.data<bfloat16>()[i])));
  }
  return result;
}

// |a - b| / |b|
double Distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  const std::vector<double> left = AsDoubles(a), right = AsDoubles(b);
  double difference = 0, norm = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    difference += (left[i] - right[i]) * (left[i] - right[i]);
    norm += right[i] * right[i];
  }
  return std::sqrt(difference / norm);
}

std::vector<Tensor> RunPlan(const ImageNetwork& network) {
  Session session(network.g);
  const FeedList feeds(network.feeds.begin(), network.feeds.end());
  session.Run(feeds, network.fetches);
  return session.Run(feeds, network.fetches);
}

// The interpreter runs node by node, without any pass over the graph.
TEST(LayoutTest, APlanInBlocksComputesTheSame) {
  if (!KernelRegistry::Global().Has("_ToBlocked", "CPU")) GTEST_SKIP() << "blocks of 16 channels are AVX-512's";
  const ImageNetwork network(DType::kFloat32), half(DType::kBfloat16);
  const std::vector<Tensor> exact = testing::Interpreter().Run(network.fetches, network.feeds);
  const std::vector<Tensor> plan = RunPlan(network);
  const std::vector<Tensor> half_exact = testing::Interpreter().Run(half.fetches, half.feeds);
  const std::vector<Tensor> half_plan = RunPlan(half);
  for (size_t i = 0; i < exact.size(); ++i) {
    // Where an activation has its corner, rounding decides on single elements; a wrong order would give about 1.
    EXPECT_LE(Distance(plan[i], exact[i]), 1e-3) << "fetch " << i;
    // Fused, bfloat16 is rounded less often, and at other places.
    EXPECT_LE(Distance(half_plan[i], exact[i]), 2.0 * Distance(half_exact[i], exact[i]) + 4e-3) << "fetch " << i;
  }
}

}  // namespace
}  // namespace cohort
