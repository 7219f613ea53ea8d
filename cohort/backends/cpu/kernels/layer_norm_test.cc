// LayerNorm on the CPU: bits that do not depend on threads, numbers that cancel, and what it refuses. The cases of
// tests/ops check formulas and gradients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/normalization.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Interpreter;

// Adds a constant whose elements are in [low, high), in scattered order.
Output ScatteredConst(Graph& graph, const Shape& shape, float low, float high, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(shape.num_elements()));
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = low + (high - low) * static_cast<float>(seed >> 8) / static_cast<float>(1 << 24);
  }
  return ops::Const(graph, values, shape);
}

// Returns the outputs of LayerNorm and of LayerNormGrad.
std::vector<Tensor> OutputsOfLayerNorms(const Shape& shape, int threads) {
  const Shape channels{shape.dim(1)};
  Graph graph;
  const Output x = ScatteredConst(graph, shape, -2, 4, 1), dy = ScatteredConst(graph, shape, -1, 1, 2);
  const Output scale = ScatteredConst(graph, channels, 0.5f, 1.5f, 3);
  const Output offset = ScatteredConst(graph, channels, -1, 1, 4);
  Node* forward = ops::LayerNorm(x, scale, offset).node;
  NodeBuilder builder = graph.Op("LayerNormGrad");
  Node* backward = builder.Input(dy).Input(x).Input(scale).Input(forward->output(1)).Input(forward->output(2)).Finish();
  std::vector<Output> fetches;
  for (const Node* node : {forward, backward}) {
    for (int i = 0; i < 3; ++i) fetches.push_back(node->output(i));
  }
  return Interpreter(threads).Run(fetches);
}

TEST(LayerNormTest, ThreadsDoNotChangeResults) {
  for (const Shape& shape : {Shape{700, 83}, Shape{3000, 16}, Shape{33, 3001}}) {
    const std::vector<Tensor> alone = OutputsOfLayerNorms(shape, 1), team = OutputsOfLayerNorms(shape, 3);
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(std::memcmp(alone[i].raw_data(), team[i].raw_data(), alone[i].bytes()), 0) << shape << " output " << i;
    }
  }
}

TEST(LayerNormTest, KeepsTheDigitsOfNumbersWithALargeMean) {
  Graph graph;
  const Output x = ops::Const(graph, std::vector<float>{4096, 4097, 4098, 4099});
  const Output ones = ops::Const(graph, std::vector<float>(4, 1.0f)), zeros = ops::Const(graph, std::vector<float>(4));
  const Tensor y = Interpreter().Run1(ops::LayerNorm(x, ones, zeros, 0.0f));
  EXPECT_THAT(y.ToVector<float>(), ::testing::Pointwise(::testing::FloatNear(1e-6f),
                                                        {-1.34164079f, -0.44721360f, 0.44721360f, 1.34164079f}));
}

TEST(LayerNormTest, RefusesWhatDoesNotFit) {
  Graph graph;
  const Output x = ScatteredConst(graph, {2, 3}, -1, 1, 1), three = ops::Const(graph, std::vector<float>(3));
  const Output two = ops::Const(graph, std::vector<float>(2));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::LayerNorm(x, two, three); }), HasSubstr("LayerNorm"));
  const Output wide = ops::Const(graph, std::vector<double>(3));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::LayerNorm(x, wide, wide); }),
              AllOf(HasSubstr("expected scale of dtype float32"), HasSubstr("got float64")));
  const Output unknown = ops::Placeholder(graph, DType::kFloat32, Shape{-1}, "scale");
  const Output y = ops::LayerNorm(x, unknown, unknown);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                Interpreter().Run1(y, {{unknown, Tensor::Zeros(DType::kFloat32, {2})}});
              }),
              AllOf(HasSubstr("scale of shape [3]"), HasSubstr("got [2]")));
}

}  // namespace
}  // namespace cohort
