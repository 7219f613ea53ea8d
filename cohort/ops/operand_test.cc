// Numbers of C++ among the inputs of ops, and what is no value at all.
#include "cohort/ops/operand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "cohort/core/testing/throws.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control_flow.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/join.h"
#include "cohort/ops/math.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/slice.h"
#include "cohort/ops/softmax.h"
#include "cohort/ops/variables.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Interpreter;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class OperandTest : public ::testing::Test {
 protected:
  template <typename T>
  Output Vector(std::vector<T> values) {
    return ops::Const(graph_, values, "x");
  }
  template <typename T>
  std::vector<T> Values(Output value) {
    return interpreter_.Run1(value).ToVector<T>();
  }

  Graph graph_;
  Interpreter interpreter_;
};

TEST_F(OperandTest, ANumberGetsTheDtypeOfTheTensorWithoutLoss) {
  EXPECT_THAT(Values<double>(Vector<double>({1}) * 0.1), ElementsAre(0.1));
  EXPECT_THAT(Values<double>(Vector<double>({1}) * 0.1f), ElementsAre(static_cast<double>(0.1f)));
  EXPECT_THAT(Values<int64_t>(Vector<int64_t>({0}) + 16777217), ElementsAre(16777217));
  EXPECT_THAT(Values<int64_t>(int64_t{9007199254740993} - Vector<int64_t>({0})), ElementsAre(9007199254740993));
  EXPECT_THAT(Values<int32_t>(Vector<int32_t>({8}) * 2.0), ElementsAre(16));
  EXPECT_THAT(Values<uint8_t>(255 - Vector<uint8_t>({5})), ElementsAre(250));
  EXPECT_THAT(Values<float>(Vector<float>({3}) / size_t{2}), ElementsAre(1.5f));
  EXPECT_THAT(Values<float>(1 / Vector<float>({4})), ElementsAre(0.25f));
  EXPECT_EQ((Vector<int32_t>({1}) + int64_t{1}).dtype(), DType::kInt32);
  EXPECT_THAT(Values<bool>(ops::LogicalAnd(Vector<bool>({true, false}), true)), ElementsAre(true, false));
}

TEST_F(OperandTest, AFloatingDtypeTakesTheNearestValue) {
  EXPECT_THAT(Values<float>(Vector<float>({0}) + 16777217), ElementsAre(16777216.0f));
  EXPECT_THAT(Values<float>(Vector<float>({0}) + 0.1), ElementsAre(0.1f));
  EXPECT_THAT(Values<float>(Vector<float>({0}) + kInfinity), ElementsAre(kInfinity));
  const Output narrow = ops::Cast(Vector<float>({0}), DType::kBfloat16);
  EXPECT_EQ((narrow + 0.1).dtype(), DType::kBfloat16);
  EXPECT_THAT(Values<float>(ops::Cast(narrow + 0.1, DType::kFloat32)), ElementsAre(static_cast<float>(bfloat16(0.1f))));
}

TEST_F(OperandTest, AnErrorNamesANumberThatTheDtypeCannotHold) {
  EXPECT_THAT(
      MessageOf<InvalidArgumentError>([&] { Vector<int32_t>({8}) * 0.5f; }),
      AllOf(HasSubstr("0.5 (float32)"), HasSubstr("int32"), HasSubstr("'x:0' (int32[1])"), HasSubstr("of Mul")));
  EXPECT_THAT(
      MessageOf<InvalidArgumentError>([&] { 3 * ops::Const(graph_, uint8_t{3}, "b") + 300; }),
      AllOf(HasSubstr("300 (int32)"), HasSubstr("uint8"), HasSubstr("'Mul:0' (uint8[])"), HasSubstr("of AddV2")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Maximum(-1, Vector<uint8_t>({1})); }),
              AllOf(HasSubstr("got -1"), HasSubstr("of Maximum")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { static_cast<void>(Vector<int64_t>({1}) > 9223372036854775808.0); }),
              AllOf(HasSubstr("9223372036854775808"), HasSubstr("int64"), HasSubstr("of Greater")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Vector<int64_t>({1}) + kInfinity; }), HasSubstr("got inf"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Vector<float>({1}) + 1e300; }),
              AllOf(HasSubstr("1e+300 (float64)"), HasSubstr("float32")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Vector<float>({1}) * true; }), HasSubstr("got true (bool)"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Equal(Vector<bool>({true}), 1); }),
              HasSubstr("got 1 (int32)"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::LogicalOr(1, Vector<bool>({true})); }),
              AllOf(HasSubstr("bool"), HasSubstr("input 'x' of LogicalOr")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Minimum(2, 3.5); }),
              AllOf(HasSubstr("the numbers 2, 3.5"), HasSubstr("Minimum")));
}

TEST_F(OperandTest, NumbersStandWhereValuesMay) {
  const Output x = Vector<float>({-1, 0.5f, 2});
  EXPECT_THAT(Values<float>(ops::Maximum(x, 0.0f)), ElementsAre(0, 0.5f, 2));
  EXPECT_THAT(Values<float>(ops::Pow(2, x)), ElementsAre(0.5f, ::testing::FloatEq(1.41421356f), 4));
  EXPECT_THAT(Values<float>(ops::ClipByValue(x, 0, 1)), ElementsAre(0, 0.5f, 1));
  EXPECT_THAT(Values<float>(ops::SelectV2(x > 0.5, x, -3)), ElementsAre(-3, -3, 2));
  EXPECT_THAT(Values<float>(ops::SelectV2(x >= 0.5, 1.5f, 0)), ElementsAre(0, 1.5f, 1.5f));
  EXPECT_THAT(Values<int32_t>(ops::SelectV2(x < 0.5, 1, 0)), ElementsAre(1, 0, 0));
  EXPECT_THAT(Values<bool>(0.5 <= x), ElementsAre(false, true, true));
  EXPECT_THAT(Values<bool>(x <= x * 2), ElementsAre(false, true, true));
  EXPECT_THAT(Values<bool>(ops::NotEqual(x, 2)), ElementsAre(true, true, false));
  EXPECT_THAT(Values<float>(ops::Fill(ops::IntVector(graph_, {2}), 7.0f)), ElementsAre(7, 7));
  EXPECT_THAT(Values<int32_t>(ops::Range(0, ops::Size(x), 2)), ElementsAre(0, 2));
  EXPECT_THAT(Values<float>(ops::Gather(x, 1)), ElementsAre(0.5f));
  EXPECT_THAT(Values<float>(ops::OneHot(ops::Const(graph_, 1), 3, 5.0f, 0)), ElementsAre(0, 5, 0));
  EXPECT_THAT(Values<float>(ops::Pad(x, {{1, 0}}, 9)), ElementsAre(9, -1, 0.5f, 2));
}

TEST_F(OperandTest, TheConstantOfANumberHasTheLineOfTheNumber) {
  const Output x = Vector<float>({1});
  const Output sum = x + 1;
  EXPECT_EQ(sum.node->inputs()[1].node->site().line, __LINE__ - 1);
  const Output largest = ops::Maximum(x, 0);
  EXPECT_EQ(largest.node->inputs()[1].node->site().line, __LINE__ - 1);
}

TEST_F(OperandTest, OneIntegerIsAListOfOne) {
  const Output x = ops::Const(graph_, std::vector<float>{1, 2, 3, 4}, Shape{2, 2});
  EXPECT_THAT(Values<float>(ops::Sum(x, 1)), ElementsAre(3, 7));
  EXPECT_THAT(Values<float>(ops::Max(x, 0, /*keep_dims=*/true)), ElementsAre(3, 4));
  EXPECT_THAT(Values<float>(ops::Mean(x, int64_t{-1})), ElementsAre(1.5f, 3.5f));
  EXPECT_EQ(ops::Reshape(x, 4).shape(), Shape{4});
}

TEST_F(OperandTest, VariablesStandWhereValuesMay) {
  const ops::Variable v(graph_, Tensor::Scalar(3.0), {.name = "v"});
  const ops::Variable axis(graph_, Tensor::Vector<int32_t>({0}), {.name = "axis"});
  const ops::Variable count(graph_, Tensor::Scalar<int64_t>(5), {.name = "count"});
  for (const ops::Variable& variable : {v, axis, count}) interpreter_.RunNode(variable.initializer());
  EXPECT_THAT(Values<double>(v * 2), ElementsAre(6));
  EXPECT_THAT(Values<double>(ops::Maximum(4, v)), ElementsAre(4));
  EXPECT_THAT(Values<bool>(v > 2), ElementsAre(true));
  EXPECT_THAT(Values<double>(v - v), ElementsAre(0));
  EXPECT_THAT(Values<float>(ops::Sum(Vector<float>({1, 2}), axis)), ElementsAre(3));
  interpreter_.RunNode(count.AssignAdd(2));
  EXPECT_THAT(Values<int64_t>(count.Read()), ElementsAre(7));
  interpreter_.RunNode(v.Assign(0.1));
  EXPECT_THAT(Values<double>(v.Read()), ElementsAre(0.1));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { count.AssignSub(0.5); }),
              AllOf(HasSubstr("0.5 (float64)"), HasSubstr("int64"), HasSubstr("variable 'count'")));
}

TEST_F(OperandTest, ANumberInABranchBelongsToTheBranch) {
  const Output x = ops::Placeholder(graph_, DType::kInt64, Shape{}, "x");
  const int before = graph_.num_nodes();
  const std::vector<Output> result = ops::If(
      x > 0, {x}, [](Graph&, const std::vector<Output>& in) { return std::vector<Output>{2 * in[0]}; },
      [](Graph&, const std::vector<Output>& in) { return std::vector<Output>{in[0] + 1}; });
  EXPECT_EQ(graph_.num_nodes(), before + 3);  // Greater, its number, If
  EXPECT_EQ(interpreter_.Run1(result[0], {{x, Tensor::Scalar<int64_t>(5)}}).scalar<int64_t>(), 10);
}

TEST_F(OperandTest, AnEmptyOutputIsAnErrorThatNamesTheOp) {
  const Output x = Vector<float>({1}), none;
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Relu(none); }),
              AllOf(HasSubstr("input 'features' of Relu"), HasSubstr("empty Output")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { static_cast<void>(x * none); }), HasSubstr("input 'y' of Mul"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { none / 2.0f; }), HasSubstr("input 'x' of RealDiv"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::MatMul(x, none); }), HasSubstr("input 'b' of MatMul"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Sum(none); }), HasSubstr("empty Output"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Reshape(none, {1}); }), HasSubstr("of Reshape"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Concat({none, x}, 0); }), HasSubstr("empty Output"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { ops::Concat({x, none}, 0); }), HasSubstr("ConcatV2"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { static_cast<void>(none.dtype()); }), HasSubstr("dtype"));
}

TEST_F(OperandTest, AnEmptyVariableIsAnError) {
  const ops::Variable none;
  const ops::Variable v(graph_, Tensor::Scalar(3.0f), {.name = "v"});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { none.Assign(1.0f); }), HasSubstr("empty Variable"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { static_cast<void>(none.name()); }), HasSubstr("empty Variable"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { v + none; }), HasSubstr("empty Variable"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { v.AssignAdd(Output()); }),
              AllOf(HasSubstr("input 'value' of AssignAddVariableOp"), HasSubstr("empty Output")));
}

TEST_F(OperandTest, AGradientThatIsNotThereNamesItsVariable) {
  const ops::Variable w(graph_, Tensor::Scalar(3.0f), {.name = "w"});
  const ops::Variable b(graph_, Tensor::Scalar(3.0f), {.name = "b"});
  const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape{-1}, "input");
  const Output loss = ops::Mean(ops::Square(x * w));
  const std::vector<Gradient> gradients = Gradients({loss}, {w, b, b.handle(), x});
  EXPECT_TRUE(gradients[0].why_none.empty());
  for (const size_t i : {1, 2}) {
    EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { b.AssignSub(ToDense(gradients[i]) * 0.1f); }),
                AllOf(HasSubstr("the loss 'Mean:0' does not depend on variable 'b'")));
  }
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ToDense(Gradient()); }), HasSubstr("got none"));
}

TEST(CrossEntropyInputsTest, AMissingInputAndIntegerLogitsAreNamed) {
  Graph g;
  const Output logits = ops::Placeholder(g, DType::kFloat32, Shape{-1, 10}, "scores");
  const Output labels = ops::Placeholder(g, DType::kInt64, Shape{-1}, "classes");
  const auto message = [](const ops::CrossEntropyInputs& inputs) {
    return MessageOf<InvalidArgumentError>([&] { ops::SparseSoftmaxCrossEntropyWithLogits(inputs); });
  };
  EXPECT_THAT(message({.labels = labels, .logits = {}}),
              HasSubstr("got no logits: pass {.labels = ..., .logits = ...}"));
  EXPECT_THAT(message({.labels = {}, .logits = logits}), HasSubstr("got no labels"));
  EXPECT_THAT(message({.labels = logits, .logits = labels}),
              AllOf(HasSubstr("got int64 from Placeholder node 'classes'"), HasSubstr("may be swapped")));
  EXPECT_EQ(ops::SparseSoftmaxCrossEntropyWithLogits({.labels = labels, .logits = logits}).shape(), Shape{-1});
}

}  // namespace
}  // namespace cohort
