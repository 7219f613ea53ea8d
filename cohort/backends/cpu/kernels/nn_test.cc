#include "cohort/ops/nn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cohort/backends/cpu/kernels/activation.h"
#include "cohort/backends/cpu/kernels/exponential.h"
#include "cohort/core/error.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/testing/activation_ops.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/softmax.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using testing::Interpreter;
using ::testing::Pointwise;

std::vector<float> Floats(const Tensor& tensor) { return tensor.ToVector<float>(); }
MATCHER_P(RelativelyNear, tolerance, "") {
  const auto [actual, expected] = arg;
  return std::abs(actual - expected) <= tolerance * std::max(1e-30, std::abs(static_cast<double>(expected)));
}

// Points of all sizes, both signs, 0.
std::vector<float> Points() {
  std::vector<float> points = {0.0f, -0.0f};
  for (float x = 1e-6f; x < 100.0f; x *= 1.37f) {
    points.push_back(x);
    points.push_back(-x);
  }
  return points;
}

struct UnaryCase {
  std::string op;
  double (*exact)(double);
  double tolerance;  // relative
};

TEST(ActivationTest, AgreesWithFormulasEverywhere) {
  const std::vector<UnaryCase> cases = {
      {"Relu", [](double x) { return x > 0 ? x : 0.0; }, 0},
      {"Relu6", [](double x) { return x > 6 ? 6.0 : (x > 0 ? x : 0.0); }, 0},
      {"Elu", [](double x) { return x > 0 ? x : std::expm1(x); }, 4e-7},
      {"Selu", [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); }, 5e-7},
      {"Sigmoid", [](double x) { return x < -87 ? 0.0 : 1 / (1 + std::exp(-x)); }, 5e-7},
      {"Tanh", [](double x) { return std::tanh(x); }, 6e-7},
      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }, 2e-6},
  };
  for (const UnaryCase& c : cases) {
    SCOPED_TRACE(c.op);
    Graph graph;
    const Output x = ops::Const(graph, Points());
    const std::vector<float> values = Floats(Interpreter().Run1(graph.Op(c.op).Input(x).Finish1()));
    for (size_t i = 0; i < values.size(); ++i) {
      const double expected = c.exact(static_cast<double>(Points()[i]));
      EXPECT_NEAR(values[i], expected, c.tolerance * std::abs(expected) + (c.tolerance > 0 ? 1e-37 : 0)) << Points()[i];
    }
  }
}

TEST(ActivationTest, ExponentialIsAccurateAndBounded) {
  for (float x = -86.9f; x < 88.0f; x += 0.0137f) {
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_NEAR(cpu::Exp(x), exact, 2e-7 * exact) << x;
  }
  EXPECT_EQ(cpu::Exp(-1e30f), 0.0f);
  EXPECT_TRUE(std::isfinite(cpu::Exp(1e30f)));
  EXPECT_TRUE(std::isnan(cpu::Exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(ActivationTest, NotANumberStaysOne) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::string& op : testing::ActivationOps()) {
    Graph graph;
    const Output x = ops::Const(graph, std::vector<float>{nan});
    EXPECT_TRUE(std::isnan(Floats(Interpreter().Run1(graph.Op(op).Input(x).Finish1()))[0])) << op;
  }
}

TEST(ActivationTest, LongTensorsOnATeamAreTheSame) {
  std::vector<float> points(100003);
  for (size_t i = 0; i < points.size(); ++i) points[i] = static_cast<float>(i % 977) / 100.0f - 5.0f;
  Graph graph;
  const Output y = ops::Selu(ops::Const(graph, points));
  EXPECT_EQ(Floats(Interpreter(1).Run1(y)), Floats(Interpreter(3).Run1(y)));
}

TEST(ActivationTest, LeakyRelu) {
  Graph graph;
  const Output x = ops::Const(graph, std::vector<float>{-4, 0, 2});
  EXPECT_THAT(Floats(Interpreter().Run1(ops::LeakyRelu(x, 0.25f))), ElementsAre(-1, 0, 2));
}

TEST(SoftmaxTest, RowsSumToOneAndDoNotOverflow) {
  Graph graph;
  const Output logits = ops::Const(graph, std::vector<float>{0, 0, 0, 0, 1000, 1000, -1000, 999}, Shape{2, 4});
  const std::vector<float> p = Floats(Interpreter().Run1(ops::Softmax(logits)));
  const double e = std::exp(-1.0);
  EXPECT_THAT(p, Pointwise(FloatNear(1e-6f), std::vector<float>{0.25f, 0.25f, 0.25f, 0.25f, float(1 / (2 + e)),
                                                                float(1 / (2 + e)), 0, float(e / (2 + e))}));
  const std::vector<float> log_p = Floats(Interpreter().Run1(ops::LogSoftmax(logits)));
  EXPECT_NEAR(log_p[0], -std::log(4.0), 1e-6);
  EXPECT_NEAR(log_p[6], -2000 - std::log(2 + e), 1e-3);
}

TEST(SoftmaxTest, HigherRanksAndManyClasses) {
  Graph graph;
  std::vector<float> values(2 * 3 * 300);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7);
  const Tensor p = Interpreter().Run1(ops::Softmax(ops::Const(graph, values, Shape{2, 3, 300})));
  for (int row = 0; row < 6; ++row) {
    double sum = 0;
    for (int i = 0; i < 300; ++i) sum += p.data<float>()[row * 300 + i];
    EXPECT_NEAR(sum, 1.0, 1e-5);
  }
}

// loss = log sum_j e^x_j - x_label; backprop = softmax - one-hot.
TEST(CrossEntropyTest, SparseAndDenseAgreeWithTheFormula) {
  Graph graph;
  const Output logits = ops::Const(graph, std::vector<float>{1, 2, 3, 0, 0, 0}, Shape{2, 3});
  const Output labels = ops::Const(graph, std::vector<int32_t>{2, 0});
  const Output one_hot = ops::Const(graph, std::vector<float>{0, 0, 1, 1, 0, 0}, Shape{2, 3});
  const Output sparse = ops::SparseSoftmaxCrossEntropyWithLogits({.labels = labels, .logits = logits});
  const Output dense = ops::SoftmaxCrossEntropyWithLogits({.labels = one_hot, .logits = logits});
  Interpreter run;
  const double sum = std::exp(1) + std::exp(2) + std::exp(3);
  const std::vector<float> losses = {float(std::log(sum) - 3), float(std::log(3))};
  EXPECT_THAT(Floats(run.Run1(sparse)), Pointwise(FloatNear(1e-6f), losses));
  EXPECT_THAT(Floats(run.Run1(dense)), Pointwise(FloatNear(1e-6f), losses));
  const std::vector<float> backprop = {float(std::exp(1) / sum),
                                       float(std::exp(2) / sum),
                                       float(std::exp(3) / sum - 1),
                                       1.0f / 3 - 1,
                                       1.0f / 3,
                                       1.0f / 3};
  EXPECT_THAT(Floats(run.Run1(sparse.node->output(1))), Pointwise(FloatNear(1e-6f), backprop));
  EXPECT_THAT(Floats(run.Run1(dense.node->output(1))), Pointwise(FloatNear(1e-6f), backprop));
  const std::vector<Gradient> gradients = Gradients({sparse}, {logits});
  EXPECT_THAT(Floats(run.Run1(gradients[0].values)), Pointwise(FloatNear(1e-6f), backprop));
}

// The memory of the logits, which have no element, must not be read.
TEST(CrossEntropyTest, NoClassesGiveNoLossAndReadNothing) {
  constexpr size_t kPage = 4096;
  void* const page = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16}) {
    Graph graph;
    const Output logits = ops::Placeholder(graph, dtype, Shape{3, 0});
    const Output loss = ops::SoftmaxCrossEntropyWithLogits(
        {.labels = ops::Const(graph, Tensor::Zeros(dtype, Shape{3, 0})), .logits = logits});
    const Tensor fed = Tensor::FromBlob(page, dtype, Shape{3, 0}, nullptr);
    EXPECT_THAT(Floats(Interpreter().Run1(ops::Cast(loss, DType::kFloat32), {{logits, fed}})), ElementsAre(0, 0, 0));
  }
  munmap(page, kPage);
}

TEST(CrossEntropyTest, BatchDimensionsMayBeMany) {
  Graph graph;
  const Output logits = ops::Const(graph, std::vector<float>(24, 0.0f), Shape{2, 3, 4});
  const Output labels = ops::Const(graph, std::vector<int64_t>{0, 1, 2, 3, 0, 1}, Shape{2, 3});
  const Output loss = ops::SparseSoftmaxCrossEntropyWithLogits({.labels = labels, .logits = logits});
  EXPECT_EQ(loss.shape(), (Shape{2, 3}));
  EXPECT_THAT(Floats(Interpreter().Run1(loss)), Each(FloatNear(std::log(4.0f), 1e-6f)));
}

TEST(CrossEntropyTest, ALabelOutOfRangeIsNamed) {
  Graph graph;
  const Output logits = ops::Const(graph, std::vector<float>{1, 2, 3, 0, 0, 0}, Shape{2, 3});
  for (const int32_t label : {3, -1}) {
    const Output loss = ops::SparseSoftmaxCrossEntropyWithLogits(
        {.labels = ops::Const(graph, std::vector<int32_t>{2, label}), .logits = logits});
    try {
      Interpreter().Run1(loss);
      FAIL() << "no error";
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr("label value of " + std::to_string(label) + " which is outside the valid range of [0, 3)"));
      EXPECT_THAT(error.what(), HasSubstr("labels[1]"));
    }
  }
}

TEST(CrossEntropyTest, SigmoidIsExactAtZeroAndFarOut) {
  Graph graph;
  const Output logits = ops::Const(graph, std::vector<float>{0, 30, -30, 500});
  const Output labels = ops::Const(graph, std::vector<float>{1, 1, 0, 0});
  const Output loss = ops::SigmoidCrossEntropyWithLogits({.labels = labels, .logits = logits});
  Interpreter run;
  const std::vector<float> losses = Floats(run.Run1(loss));
  EXPECT_NEAR(losses[0], std::log(2.0), 1e-6);
  EXPECT_NEAR(losses[1], std::exp(-30.0), 1e-18);
  EXPECT_NEAR(losses[2], std::exp(-30.0), 1e-18);
  EXPECT_NEAR(losses[3], 500.0, 1e-4);
  const std::vector<float> slopes = Floats(run.Run1(Gradients({loss}, {logits})[0].values));
  EXPECT_NEAR(slopes[0], -0.5, 1e-6);  // sigmoid(0) - 1
  EXPECT_NEAR(slopes[3], 1.0, 1e-6);
}

TEST(BiasTest, AddsAlongTheChannelAxis) {
  Graph graph;
  const Output value = ops::Const(graph, std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0}, Shape{1, 2, 2, 2});
  const Output bias = ops::Const(graph, std::vector<float>{1, 2});
  Interpreter run;
  EXPECT_THAT(Floats(run.Run1(ops::BiasAdd(value, bias))), ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
  EXPECT_THAT(Floats(run.Run1(ops::BiasAdd(value, bias, "NCHW"))), ElementsAre(1, 1, 1, 1, 2, 2, 2, 2));
  EXPECT_THROW(ops::BiasAdd(value, ops::Const(graph, std::vector<float>{1, 2, 3})), InvalidArgumentError);
}

TEST(BiasTest, GradientSumsInABlockOrderThatThreadsDoNotChange) {
  constexpr int kRows = 70001;
  std::vector<float> values(kRows * 3);
  for (size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 0 ? 0.1f : static_cast<float>(i % 3);
  Graph graph;
  const Output sum = graph.Op("BiasAddGrad").Input(ops::Const(graph, values, Shape{kRows, 3})).Finish1();
  const std::vector<float> one = Floats(Interpreter(1).Run1(sum));
  EXPECT_EQ(one, Floats(Interpreter(4).Run1(sum)));
  EXPECT_THAT(one, Pointwise(RelativelyNear(2e-6), std::vector<float>{0.1f * kRows, kRows, 2 * kRows}));
  const Output nchw = graph.Op("BiasAddGrad")
                          .Input(ops::Const(graph, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, Shape{2, 2, 2}))
                          .Attr("data_format", "NCHW")
                          .Finish1();
  EXPECT_THAT(Floats(Interpreter().Run1(nchw)), ElementsAre(14, 22));
}

TEST(BiasTest, GradientOfNoRowsIsZero) {
  Graph graph;
  const Output sum = graph.Op("BiasAddGrad").Input(ops::Const(graph, Tensor(DType::kFloat32, Shape{0, 2}))).Finish1();
  EXPECT_THAT(Floats(Interpreter().Run1(sum)), ElementsAre(0, 0));
}

TEST(L2LossTest, IsHalfTheSumOfSquares) {
  Graph graph;
  EXPECT_EQ(Interpreter().Run1(ops::L2Loss(ops::Const(graph, std::vector<float>{1, -2, 3}))).scalar<float>(), 7.0f);
  std::vector<float> many(1 << 20, 0.1f);
  EXPECT_NEAR(Interpreter().Run1(ops::L2Loss(ops::Const(graph, many))).scalar<float>(), 0.005 * (1 << 20), 1e-2);
}

TEST(InTopKTest, TiesCountAndWhatCannotBeSaidDoesNot) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Graph graph;
  const Output predictions =
      ops::Const(graph, std::vector<float>{0.1f, 0.8f, 0.1f, 0.3f, 0.3f, 0.3f, 0.1f, 0.2f, nan, 1, 2, 3}, Shape{4, 3});
  const Output targets = ops::Const(graph, std::vector<int32_t>{0, 2, 1, 7});
  const Tensor top1 = Interpreter().Run1(ops::InTopK(predictions, targets, 1));
  EXPECT_THAT(std::vector<bool>(top1.data<bool>(), top1.data<bool>() + 4), ElementsAre(false, true, false, false));
  const Tensor top2 = Interpreter().Run1(ops::InTopK(predictions, targets, 2));
  EXPECT_THAT(std::vector<bool>(top2.data<bool>(), top2.data<bool>() + 4), ElementsAre(true, true, false, false));
}

TEST(DropoutTest, KeepsTheExpectedValue) {
  Graph graph;
  const Output x = ops::Const(graph, std::vector<float>(10000, 1.0f));
  const std::vector<float> y = Floats(Interpreter().Run1(ops::Dropout(x, 0.25, 7)));
  int zeros = 0;
  for (const float value : y) {
    if (value == 0.0f) {
      ++zeros;
    } else {
      ASSERT_FLOAT_EQ(value, 1.0f / 0.75f);
    }
  }
  EXPECT_NEAR(zeros, 2500, 200);  // 4.6 standard deviations
  EXPECT_EQ(ops::Dropout(x, 0.0), x);
  EXPECT_THROW(ops::Dropout(x, 1.0), InvalidArgumentError);
}

TEST(NnTest, OtherFloatingDTypes) {
  Graph graph;
  const Output x64 = ops::Const(graph, std::vector<double>{-1, 1});
  EXPECT_THAT(
      Interpreter().Run1(ops::Sigmoid(x64)).ToVector<double>(),
      Pointwise(::testing::DoubleNear(1e-15), std::vector<double>{1 / (1 + std::exp(1)), 1 / (1 + std::exp(-1))}));
  const Output x16 = ops::Const(graph, Tensor::Vector<bfloat16>({bfloat16(-3.0f), bfloat16(5.0f)}));
  const Tensor y16 = Interpreter().Run1(ops::Relu(x16));
  EXPECT_EQ(float(y16.data<bfloat16>()[0]), 0.0f);
  EXPECT_EQ(float(y16.data<bfloat16>()[1]), 5.0f);
  EXPECT_THROW(ops::Relu(ops::Const(graph, 1)), InvalidArgumentError);
}

// A pass over a graph fuses whatever op has the trait, so a fused kernel has to know it.
TEST(ActivationTest, EveryOpWithTheTraitHasALoopForFusedKernels) {
  int activations = 0;
  for (const OpDef* op : OpRegistry::Global().All()) {
    const bool has_loop = cpu::FindActivation(op->name(), DType::kFloat32).loop != nullptr;
    EXPECT_EQ(op->is_activation(), has_loop) << op->name();
    if (op->is_activation()) ++activations;
  }
  EXPECT_GE(activations, 7);
}

}  // namespace
}  // namespace cohort
