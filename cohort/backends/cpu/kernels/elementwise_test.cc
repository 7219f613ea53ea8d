#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "cohort/backends/cpu/kernels/exponential.h"
#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Interpreter;

Tensor Floats(const Shape& shape, float scale) {
  Tensor tensor(DType::kFloat32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data<float>()[i] = scale * static_cast<float>((i * 7919) % 1009 - 504);
  }
  return tensor;
}

TEST(ElementwiseTest, OperatorsComputeWhatTheySay) {
  Graph graph;
  const Output x = ops::Const(graph, std::vector<float>{1, 2, -3});
  const Output y = ops::Const(graph, std::vector<float>{4, 0.5f, 2});
  Interpreter interpreter;
  EXPECT_THAT(interpreter.Run1(x + y).ToVector<float>(), ElementsAre(5, 2.5f, -1));
  EXPECT_THAT(interpreter.Run1(x - y).ToVector<float>(), ElementsAre(-3, 1.5f, -5));
  EXPECT_THAT(interpreter.Run1(x * y).ToVector<float>(), ElementsAre(4, 1, -6));
  EXPECT_THAT(interpreter.Run1(x / y).ToVector<float>(), ElementsAre(0.25f, 4, -1.5f));
  EXPECT_THAT(interpreter.Run1(-x).ToVector<float>(), ElementsAre(-1, -2, 3));
  EXPECT_THAT(interpreter.Run1(2.0f * x + 1.0f).ToVector<float>(), ElementsAre(3, 5, -5));
  EXPECT_THAT(interpreter.Run1(1.0f - x / 2.0f).ToVector<float>(), ElementsAre(0.5f, 0, 2.5f));
}

// A chain long enough that every result lies in the memory of an operand.
TEST(ElementwiseTest, ResultsInOperandsMemoryAreRight) {
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{5});
  const Output row = ops::Placeholder(graph, DType::kFloat32, Shape{1});
  Output a = x + x;                    // 2x
  Output b = ops::Square(x);           // x^2
  const Output c = (a * b - a) / row;  // (2x^3 - 2x) / r
  const Output d = row - c;
  Interpreter interpreter;
  const Tensor value = Tensor::Vector(std::vector<float>{0, 1, 2, 3, -1});
  const Tensor result = interpreter.Run1(d, {{x, value}, {row, Tensor::Vector(std::vector<float>{2})}});
  EXPECT_THAT(result.ToVector<float>(), ElementsAre(2, 2, 2 - 6, 2 - 24, 2));
  EXPECT_THAT(value.ToVector<float>(), ElementsAre(0, 1, 2, 3, -1)) << "a fed value must not be written";
}

TEST(ElementwiseTest, ThreadsDoNotChangeResults) {
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{300, 401});
  const Output row = ops::Placeholder(graph, DType::kFloat32, Shape{401});
  const Output column = ops::Placeholder(graph, DType::kFloat32, Shape{300, 1});
  const std::vector<Output> fetches = {x + row,
                                       x * column,
                                       column - row,
                                       ops::Exp(x),
                                       ops::SelectV2(ops::Greater(x, row), x, column),
                                       ops::AddN({x, x, x}),
                                       ops::Cast(x, DType::kFloat64),
                                       ops::BroadcastTo(row, {300, 401})};
  const Interpreter::Feeds feeds = {
      {x, Floats({300, 401}, 0.01f)}, {row, Floats({401}, 0.1f)}, {column, Floats({300, 1}, -0.3f)}};
  const std::vector<Tensor> one = Interpreter(1).Run(fetches, feeds), three = Interpreter(3).Run(fetches, feeds);
  for (size_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(one[i].bytes(), three[i].bytes());
    EXPECT_EQ(std::memcmp(one[i].raw_data(), three[i].raw_data(), one[i].bytes()), 0) << "fetch " << i;
  }
}

TEST(ElementwiseTest, IntegerArithmeticIsDefinedEverywhere) {
  constexpr int32_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
  Graph graph;
  const Output low = ops::Const(graph, std::vector<int32_t>{kLow}), minus = ops::Const(graph, std::vector<int32_t>{-1});
  const Output high = ops::Const(graph, std::vector<int32_t>{kHigh});
  Interpreter interpreter;
  const auto run = [&](Output value) { return interpreter.Run1(value).ToVector<int32_t>()[0]; };
  EXPECT_EQ(run(low / minus), kLow);
  EXPECT_EQ(run(ops::FloorDiv(low, minus)), kLow);
  EXPECT_EQ(run(ops::FloorMod(low, minus)), 0);
  EXPECT_EQ(run(high - minus), kLow);
  EXPECT_EQ(run(-low), kLow);
  EXPECT_EQ(run(ops::Abs(low)), kLow);
  EXPECT_EQ(run(high * high), 1);
}

TEST(ElementwiseTest, IntegerDivisionByZeroIsAnErrorThatNamesShapes) {
  Graph graph;
  const Output x = ops::Const(graph, std::vector<int32_t>{1, 2, 3, 4}, Shape{2, 2});
  const Output y = ops::Const(graph, std::vector<int32_t>{1, 0});
  Interpreter interpreter;
  for (const Output& value : {x / y, ops::FloorDiv(x, y), ops::FloorMod(x, y)}) {
    const std::string message = MessageOf<InvalidArgumentError>([&] { interpreter.Run1(value); });
    EXPECT_THAT(message, HasSubstr("division by zero"));
    EXPECT_THAT(message, HasSubstr("[2,2]"));
  }
  const std::string message = MessageOf<InvalidArgumentError>([&] { interpreter.Run1(ops::Pow(x, -y)); });
  EXPECT_THAT(message, HasSubstr("negative integer powers"));
}

TEST(ElementwiseTest, ShapesThatDoNotBroadcastAreRefusedInBothPlaces) {
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{2, 3});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                x + ops::Const(graph, std::vector<float>{1, 2});
              }),
              HasSubstr("[2,3] vs. [2]"));
  const Output u = ops::Placeholder(graph, DType::kFloat32, Shape{-1}),
               v = ops::Placeholder(graph, DType::kFloat32, Shape{-1});
  Interpreter interpreter;
  const std::string message = MessageOf<InvalidArgumentError>([&] {
    interpreter.Run1(u + v, {{u, Floats({2}, 1)}, {v, Floats({3}, 1)}});
  });
  EXPECT_THAT(message, HasSubstr("[2] vs. [3]"));
}

TEST(ElementwiseTest, ExponentialIsGoodOverTheWholeRange) {
  for (float x = -104.5f; x < 89.5f; x += 0.0137f) {
    const double expected = std::exp(static_cast<double>(x));
    const float actual = cpu::FullExp(x);
    if (expected > std::numeric_limits<float>::max()) {
      EXPECT_TRUE(std::isinf(actual)) << x;
    } else {
      // Four units in the last place, or one of the smallest denormal numbers.
      EXPECT_NEAR(actual, expected, std::max(expected * 5e-7, 3e-45)) << x;
    }
  }
  EXPECT_EQ(cpu::FullExp(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_TRUE(std::isnan(cpu::FullExp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(ElementwiseTest, GradientsOfEqualShapesNeedNoReduction) {
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{8}),
               y = ops::Placeholder(graph, DType::kFloat32, Shape{8});
  Gradients({x * y + x}, {x, y});
  for (const Node* node : graph.nodes()) {
    EXPECT_NE(node->op_name(), "Sum");
    EXPECT_NE(node->op_name(), "Reshape");
    EXPECT_NE(node->op_name(), "BroadcastGradientArgs");
  }
}

TEST(ClipTest, ByGlobalNormScalesAllAlikeAndKeepsSparseOnes) {
  Graph graph;
  const Output a = ops::Const(graph, std::vector<float>{3, 0}),
               b = ops::Const(graph, std::vector<float>{0, 4}, Shape{1, 2});
  const Gradient sparse(b, ops::Const(graph, std::vector<int32_t>{7}), ops::Const(graph, std::vector<int32_t>{9, 2}));
  const auto clipped = ops::ClipByGlobalNorm({Gradient(a), Gradient(), sparse}, 2.5f);
  Interpreter interpreter;
  EXPECT_FLOAT_EQ(interpreter.Run1(clipped.global_norm).scalar<float>(), 5);
  EXPECT_THAT(interpreter.Run1(clipped.gradients[0].values).ToVector<float>(), ElementsAre(1.5f, 0));
  EXPECT_FALSE(clipped.gradients[1].exists());
  EXPECT_TRUE(clipped.gradients[2].is_sparse());
  EXPECT_THAT(interpreter.Run1(clipped.gradients[2].values).ToVector<float>(), ElementsAre(0, 2));
  const auto untouched = ops::ClipByGlobalNorm({Gradient(a)}, 10);
  EXPECT_THAT(interpreter.Run1(untouched.gradients[0].values).ToVector<float>(), ElementsAre(3, 0));
}

TEST(ClipTest, AnInfiniteNormMakesAllNan) {
  Graph graph;
  const Output a = ops::Const(graph, std::vector<float>{INFINITY, 1});
  const auto clipped = ops::ClipByGlobalNorm({Gradient(a)}, 1);
  Interpreter interpreter;
  const Tensor values = interpreter.Run1(clipped.gradients[0].values);
  for (const float value : values.values<float>()) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace cohort
