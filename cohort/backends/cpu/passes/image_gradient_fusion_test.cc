#include "cohort/backends/cpu/passes/image_gradient_fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cohort/graph/gradients.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/convolution.h"
#include "cohort/ops/math.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/pooling.h"
#include "cohort/runtime/session.h"
#include "cohort/runtime/testing/device_kinds.h"

namespace cohort {
namespace {

// How many nodes of each op there are.
std::map<std::string, int> Count(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node* node : graph.nodes()) ++counts[node->op_name()];
  return counts;
}

struct Network {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  Output x, w, b, y;
  std::vector<Gradient> gradients;

  Network() {
    x = ops::Placeholder(*graph, DType::kFloat32, Shape{-1, 8, 8, 2}, "x");
    w = ops::Placeholder(*graph, DType::kFloat32, Shape{3, 3, 2, 4}, "w");
    b = ops::Placeholder(*graph, DType::kFloat32, Shape{4}, "b");
    y = ops::MaxPool(ops::Relu(ops::BiasAdd(ops::Conv2D(x, w), b)));
    gradients = Gradients({ops::Sum(y * y)}, {w, b, x});
    for (int i = 0; i < 3; ++i) {
      const Output value = gradients[static_cast<size_t>(i)].values;
      graph->Op("_Retval").Name("fetch").Input(value).Attr("index", i).Finish();
    }
  }
};

TEST(ImageGradientFusionTest, BiasGradientsAndPlacesAreComputedOnce) {
  Network network;
  const auto result = FuseImageGradients(std::move(network.graph), "CPU");
  std::map<std::string, int> counts = Count(*result);
  EXPECT_EQ(counts["_FusedConv2DBackpropFilter"], 1);
  EXPECT_EQ(counts["Conv2DBackpropFilter"] + counts["BiasAddGrad"], 0);
  EXPECT_EQ(counts["_MaxPoolWithPlaces"], 1);
  EXPECT_EQ(counts["_MaxPoolGradAtPlaces"], 1);
  EXPECT_EQ(counts["MaxPool"] + counts["MaxPoolGrad"], 0);
  EXPECT_EQ(counts["Conv2DBackpropInput"], 1);
  EXPECT_EQ(counts["_Retval"], 3);
}

// The large value between activation and pool is not kept for the gradient: the pooled one is enough.
TEST(ImageGradientFusionTest, TheGradientOfAnActivationReadsThePooledValue) {
  Network network;
  const auto result = FuseImageGradients(std::move(network.graph), "CPU");
  const Node* activation = nullptr;
  for (const Node* node : result->nodes()) {
    if (node->op_name() == "ReluGrad") activation = node;
    for (const Output& input : node->inputs()) {
      if (input.node->op_name() == "Relu") {
        EXPECT_EQ(node->op_name(), "_MaxPoolWithPlaces");
      }
    }
  }
  ASSERT_NE(activation, nullptr);
  EXPECT_EQ(activation->input(1).node->op_name(), "_MaxPoolWithPlaces");
  EXPECT_EQ(activation->output_shape(0), (Shape{-1, 3, 3, 4}));
}

TEST(ImageGradientFusionTest, GradientsThroughActivationAndPoolAreTheSameInEitherOrder) {
  for (const auto activate : {ops::Relu, ops::Relu6, ops::Elu, ops::Selu, ops::Sigmoid, ops::Tanh}) {
    for (const int64_t size : {2, 3}) {  // apart, and overlapping
      Graph g;
      const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1, 9, 9, 16}, "x");
      const Output y = ops::MaxPool(activate(x, "activation"), {.size = {size, size}, .padding = "SAME"});
      const Output dx = Gradients({ops::Sum(y * y * y)}, {x})[0].values;
      Output pool_gradient;
      for (Node* node : g.nodes()) {
        if (node->op_name() == "MaxPoolGrad") pool_gradient = node->output(0);
      }
      ASSERT_TRUE(pool_gradient.valid());
      Tensor images(DType::kFloat32, Shape{2, 9, 9, 16});
      for (int64_t i = 0; i < images.num_elements(); ++i)
        images.data<float>()[i] = static_cast<float>((i * 7919) % 1009) / 168 - 3;
      Session session(g);
      const Tensor alone = session.Run({{x, images}}, {dx})[0];
      const Tensor beside = session.Run({{x, images}}, {dx, pool_gradient})[0];  // whose value is read: nothing moves
      double change = 0;
      for (int64_t i = 0; i < images.num_elements(); ++i) {
        const float expected = beside.data<float>()[i];
        ASSERT_NEAR(alone.data<float>()[i], expected, 1e-5f * std::max(1.0f, std::abs(expected)))
            << size << " at " << i;
        change += std::abs(expected);
      }
      EXPECT_GT(change, 1);
    }
  }
}

TEST(ImageGradientFusionTest, WhatOnlyLooksLikeAnActivationsGradientStaysBehindThePools) {
  const auto places = [](const auto& change) {  // how many inputs of ReluGrad are images before the pool
    Network network;
    Node* relu = nullptr;
    Node* pool = nullptr;
    for (Node* node : network.graph->nodes()) {
      if (node->op_name() == "ReluGrad") relu = node;
      if (node->op_name() == "MaxPoolGrad") pool = node;
    }
    change(*network.graph, *relu, *pool);
    const auto result = FuseImageGradients(std::move(network.graph), "CPU");
    int before = 0;
    for (const Node* node : result->nodes()) {
      if (node->op_name() != "ReluGrad") continue;
      for (const Output& input : node->inputs()) before += input.shape() == Shape{-1, 6, 6, 4} ? 1 : 0;
    }
    return before;
  };
  EXPECT_EQ(places([](Graph&, Node&, Node&) {}), 0);
  // The pool's gradient decides, the activation is passed on.
  EXPECT_EQ(places([](Graph&, Node& relu, Node&) {
              const Output gradient = relu.input(0);
              relu.ReplaceInput(0, relu.input(1));
              relu.ReplaceInput(1, gradient);
            }),
            2);
  // Something that waits for the pool's gradient comes before the activation's.
  EXPECT_EQ(places([](Graph& graph, Node& relu, Node& pool) {
              relu.AddControlInput(graph.Op("NoOp").Control(&pool).Finish());
            }),
            2);
}

TEST(ImageGradientFusionTest, ControlEdgesMove) {
  Network network;
  Node* before = network.graph->Op("NoOp").Name("before").Finish();
  network.gradients[0].values.node->AddControlInput(before);
  network.graph->Op("NoOp").Name("after").Control(network.gradients[1].values.node).Finish();
  const auto result = FuseImageGradients(std::move(network.graph), "CPU");
  const Node* after = result->FindNode("after");
  ASSERT_EQ(after->control_inputs().size(), 1u);
  const Node* fused = after->control_inputs()[0];
  EXPECT_EQ(fused->op_name(), "_FusedConv2DBackpropFilter");
  ASSERT_EQ(fused->control_inputs().size(), 1u);
  EXPECT_EQ(fused->control_inputs()[0]->name(), "before");
}

// One of the two gradients waits for the other: together they would wait for themselves.
TEST(ImageGradientFusionTest, NodesThatWaitForEachOtherStayApart) {
  for (const auto& [waits, first] : std::vector<std::pair<size_t, size_t>>{{0, 1}, {1, 0}}) {
    Network network;
    Node* between = network.graph->Op("NoOp").Name("between").Control(network.gradients[first].values.node).Finish();
    network.gradients[waits].values.node->AddControlInput(between);
    const auto result = FuseImageGradients(std::move(network.graph), "CPU");
    EXPECT_EQ(Count(*result)["_FusedConv2DBackpropFilter"], 0);
  }
}

TEST(ImageGradientFusionTest, PoolsOfOtherWindowsAndDevicesAreLeftAlone) {
  auto graph = std::make_unique<Graph>();
  const Output x = ops::Placeholder(*graph, DType::kFloat32, Shape{-1, 8, 8, 2}, "x");
  const Output y = ops::MaxPool(x);
  graph->Op("MaxPoolGrad")
      .Input(x)
      .Input(y)
      .Input(y)
      .Attr("ksize", std::vector<int64_t>{1, 2, 2, 1})
      .Attr("strides", std::vector<int64_t>{1, 2, 2, 1})
      .Attr("padding", "SAME")
      .Finish();
  const Graph* same = graph.get();
  EXPECT_EQ(FuseImageGradients(std::move(graph), "CPU").get(), same);
  Network network;
  same = network.graph.get();
  EXPECT_EQ(FuseImageGradients(std::move(network.graph), "NO_SUCH_DEVICE").get(), same);
}

}  // namespace
}  // namespace cohort
