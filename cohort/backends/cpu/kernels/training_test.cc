// Update ops against their formulas, dense and by row, for the rules that no optimizer class uses; the others are in
// train/optimizer_test.cc.
#include "cohort/ops/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/variables.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using testing::Interpreter;
using ::testing::Pointwise;

class TrainingTest : public ::testing::Test {
 protected:
  ops::Variable Var(const std::string& name, const std::vector<float>& values) {
    return ops::Variable(graph, Tensor::Vector(values), {.name = name});
  }
  ops::Variable Table(const std::string& name, const std::vector<float>& values) {
    return ops::Variable(graph, Tensor::FromValues(values, Shape{static_cast<int64_t>(values.size()) / 2, 2}),
                         {.name = name});
  }
  Output Number(float value) { return ops::Const(graph, value); }
  Output Vector(const std::vector<float>& values) { return ops::Const(graph, values); }
  std::vector<float> Value(const ops::Variable& variable) { return run.Run1(variable).ToVector<float>(); }
  void Initialize() { run.RunNode(ops::GlobalVariablesInitializer(graph)); }

  Graph graph;
  Interpreter run;
};

TEST_F(TrainingTest, KerasMomentumWithAndWithoutNesterov) {
  for (const bool nesterov : {false, true}) {
    const ops::Variable w = Var("w", {1, 2});
    const ops::Variable a = Var("a", {0, 0});
    Initialize();
    Node* update =
        ops::ResourceApplyKerasMomentum(w.handle(), a.handle(), Number(0.1f), Vector({1, -1}), Number(0.5f), nesterov);
    std::vector<double> weight = {1, 2};
    std::vector<double> accum = {0, 0};
    const std::vector<double> g = {1, -1};
    for (int step = 0; step < 3; ++step) {
      run.RunNode(update);
      for (size_t i = 0; i < 2; ++i) {
        accum[i] = 0.5 * accum[i] - 0.1 * g[i];
        weight[i] += nesterov ? 0.5 * accum[i] - 0.1 * g[i] : accum[i];
        EXPECT_NEAR(Value(w)[i], weight[i], 1e-6) << nesterov << step;
        EXPECT_NEAR(Value(a)[i], accum[i], 1e-6) << nesterov << step;
      }
    }
  }
}

TEST_F(TrainingTest, AdagradV2AddsEpsilonOutsideTheRoot) {
  const ops::Variable w = Var("w", {1});
  const ops::Variable a = Var("a", {0.1f});
  Initialize();
  Node* update = ops::ResourceApplyAdagradV2(w.handle(), a.handle(), Number(0.5f), Number(0.01f), Vector({2}));
  double weight = 1;
  double accum = 0.1;
  for (int step = 0; step < 3; ++step) {
    run.RunNode(update);
    accum += 4;
    weight -= 0.5 * 2 / (std::sqrt(accum) + 0.01);
    EXPECT_NEAR(Value(w)[0], weight, 1e-6);
    EXPECT_NEAR(Value(a)[0], accum, 1e-5);
  }
}

TEST_F(TrainingTest, KerasAdagradAddsEpsilonUnderTheRoot) {
  const ops::Variable w = Var("w", {1});
  const ops::Variable a = Var("a", {0});
  Initialize();
  Node* update = ops::ResourceApplyKerasAdagrad(w.handle(), a.handle(), Number(0.5f), Number(0.25f), Vector({2}));
  double weight = 1;
  for (int step = 1; step <= 3; ++step) {
    run.RunNode(update);
    weight -= 0.5 * 2 / std::sqrt(4.0 * step + 0.25);
    EXPECT_NEAR(Value(w)[0], weight, 1e-6);
    EXPECT_NEAR(Value(a)[0], 4.0 * step, 1e-5);
  }
}

TEST_F(TrainingTest, AmsgradKeepsTheLargestSecondMoment) {
  const ops::Variable w = Var("w", {1});
  const ops::Variable m = Var("m", {0});
  const ops::Variable v = Var("v", {0});
  const ops::Variable hat = Var("hat", {0});
  Initialize();
  double weight = 1, first = 0, second = 0, largest = 0;
  for (const double g : {4.0, 0.25, 1.0}) {
    const ops::AdamScalars scalars = {Number(0.5f), Number(0.75f), Number(0.1f),
                                      Number(0.9f), Number(0.5f),  Number(1e-3f)};
    run.RunNode(ops::ResourceApplyAdamWithAmsgrad(w.handle(), m.handle(), v.handle(), hat.handle(), scalars,
                                                  Vector({static_cast<float>(g)})));
    first += (g - first) * 0.1;
    second += (g * g - second) * 0.5;
    largest = std::max(largest, second);
    weight -= 0.1 * std::sqrt(0.25) / 0.5 * first / (std::sqrt(largest) + 1e-3);
    EXPECT_NEAR(Value(w)[0], weight, 1e-6) << g;
    EXPECT_NEAR(Value(hat)[0], largest, 1e-5) << g;
  }
  EXPECT_NEAR(largest, 8.0, 1e-9);
}

TEST_F(TrainingTest, WeightDecayShrinksInEveryDType) {
  const ops::Variable w = Var("w", {1, -2});
  const ops::Variable w64(graph, Tensor::Scalar(4.0), {.name = "w64"});
  Initialize();
  run.RunNode(ops::ResourceApplyWeightDecay(w.handle(), Number(0.25f)));
  EXPECT_THAT(Value(w), ElementsAre(0.75f, -1.5f));
  run.RunNode(ops::ResourceApplyWeightDecay(w64.handle(), ops::Const(graph, 0.5)));
  EXPECT_EQ(run.Run1(w64).scalar<double>(), 2.0);
  EXPECT_THROW(run.RunNode(ops::ResourceApplyWeightDecay(w.handle(), ops::Const(graph, 0.5))), InvalidArgumentError);
}

TEST_F(TrainingTest, FtrlShrinksSmallWeightsToZero) {
  for (const float lr_power : {-0.5f, -0.7f}) {
    const ops::Variable w = Var("w", {0.5f, 0.5f});
    const ops::Variable a = Var("a", {0.1f, 0.1f});
    const ops::Variable l = Var("l", {0, 0});
    Initialize();
    const ops::FtrlScalars scalars = {Number(0.2f), Number(0.3f), Number(0.05f), Number(lr_power)};
    Node* update = ops::ResourceApplyFtrl(w.handle(), a.handle(), l.handle(), Vector({0.01f, 1.5f}), scalars);
    std::vector<double> weight = {0.5, 0.5};
    std::vector<double> accum = {0.1, 0.1};
    std::vector<double> linear = {0, 0};
    const std::vector<double> g = {0.01, 1.5};
    const double p = -static_cast<double>(lr_power);
    for (int step = 0; step < 3; ++step) {
      run.RunNode(update);
      for (size_t i = 0; i < 2; ++i) {
        const double next = accum[i] + g[i] * g[i];
        linear[i] += g[i] - (std::pow(next, p) - std::pow(accum[i], p)) / 0.2 * weight[i];
        const double clipped = std::min(0.3, std::max(-0.3, linear[i]));
        weight[i] = (clipped - linear[i]) / (std::pow(next, p) / 0.2 + 2 * 0.05);
        accum[i] = next;
        EXPECT_NEAR(Value(w)[i], weight[i], 2e-6) << lr_power << " " << step;
        EXPECT_NEAR(Value(l)[i], linear[i], 2e-6) << lr_power << " " << step;
      }
    }
    EXPECT_EQ(Value(w)[0], 0.0f);
  }
}

TEST_F(TrainingTest, FtrlWithLinearTimesTheRateIsTheSameWeight) {
  const ops::Variable w = Var("w", {0.5f, -0.5f});
  const ops::Variable a = Var("a", {0.1f, 0.1f});
  const ops::Variable l = Var("l", {0, 0});
  const ops::Variable w2 = Var("w2", {0.5f, -0.5f});
  const ops::Variable a2 = Var("a2", {0.1f, 0.1f});
  const ops::Variable l2 = Var("l2", {0, 0});
  Initialize();
  const ops::FtrlScalars s = {Number(0.2f), Number(0.01f), Number(0.05f), Number(-0.5f)};
  Node* plain = ops::ResourceApplyFtrl(w.handle(), a.handle(), l.handle(), Vector({0.3f, 1.5f}), s);
  Node* times = graph.Op("ResourceApplyFtrl")
                    .Input(w2.handle())
                    .Input(a2.handle())
                    .Input(l2.handle())
                    .Input(Vector({0.3f, 1.5f}))
                    .Input(s.lr)
                    .Input(s.l1)
                    .Input(s.l2)
                    .Input(s.lr_power)
                    .Attr("multiply_linear_by_lr", true)
                    .Finish();
  for (int step = 0; step < 3; ++step) {
    run.RunNode(plain);
    run.RunNode(times);
    EXPECT_THAT(Value(w2), Pointwise(FloatNear(1e-6f), Value(w)));
    EXPECT_NEAR(Value(l2)[0], 0.2f * Value(l)[0], 1e-6);
  }
}

TEST_F(TrainingTest, AdamWithNesterov) {
  const ops::Variable w = Var("w", {1});
  const ops::Variable m = Var("m", {0});
  const ops::Variable v = Var("v", {0});
  Initialize();
  const ops::AdamScalars s = {Number(0.9f), Number(0.99f), Number(0.1f), Number(0.9f), Number(0.99f), Number(1e-3f)};
  run.RunNode(ops::ResourceApplyAdam(w.handle(), m.handle(), v.handle(), s, Vector({2}), /*use_nesterov=*/true));
  const double moment = 0.1 * 2;
  const double square = 0.01 * 4;
  const double alpha = 0.1 * std::sqrt(1 - 0.99) / (1 - 0.9);
  EXPECT_NEAR(Value(w)[0], 1 - alpha * (2 * 0.1 + 0.9 * moment) / (std::sqrt(square) + 1e-3), 1e-6);
}

TEST_F(TrainingTest, RowUpdatesLeaveOtherRowsAlone) {
  const ops::Variable w = Table("w", {1, 1, 2, 2, 3, 3});
  const ops::Variable a = Table("a", {1, 1, 1, 1, 1, 1});
  Initialize();
  const Output rows = ops::Const(graph, std::vector<float>{1, 2, 0, -1}, Shape{2, 2});
  const Output indices = ops::Const(graph, std::vector<int64_t>{2, 0});
  run.RunNode(ops::ResourceSparseApplyAdagradV2(w.handle(), a.handle(), Number(1), Number(0.5f), rows, indices));
  EXPECT_THAT(Value(a), ElementsAre(1, 2, 1, 1, 2, 5));
  const auto moved = [](double from, double g, double accum) { return float(from - g / (std::sqrt(accum) + 0.5)); };
  EXPECT_THAT(Value(w), Pointwise(FloatNear(1e-6f),
                                  std::vector<float>{1, moved(1, -1, 2), 2, 2, moved(3, 1, 2), moved(3, 2, 5)}));
}

// Every rule, by row over all rows, gives what the dense form gives.
TEST_F(TrainingTest, RowUpdatesOfAllRowsAreTheDenseUpdate) {
  const std::vector<float> start = {1, -2, 3, 0.5f};
  const std::vector<float> slot = {0.3f, 0.2f, 0.1f, 0.4f};
  const Output grad = ops::Const(graph, std::vector<float>{0.5f, -1, 2, 0.25f}, Shape{2, 2});
  const Output all = ops::Const(graph, std::vector<int32_t>{0, 1});
  const Output lr = Number(0.1f);
  const ops::RMSPropScalars rms = {lr, Number(0.8f), Number(0.5f), Number(0.01f)};
  const ops::FtrlScalars ftrl = {lr, Number(0.01f), Number(0.02f), Number(-0.5f)};
  const ops::AdamScalars adam = {Number(0.9f), Number(0.99f), lr, Number(0.9f), Number(0.99f), Number(1e-3f)};
  const auto table = [&](const std::string& name, const std::vector<float>& values) {
    return Table(name, values).handle();
  };
  const auto check = [&](const char* rule, auto make) {
    SCOPED_TRACE(rule);
    std::vector<std::vector<Output>> sets;
    for (int set = 0; set < 2; ++set) {
      sets.push_back({table("var", start), table("s1", slot), table("s2", slot), table("s3", slot)});
    }
    Initialize();
    run.RunNode(make(sets[0], false));
    run.RunNode(make(sets[1], true));
    const std::vector<ops::Variable> made = [&] {
      std::vector<ops::Variable> last;
      const std::vector<VariableInfo*> variables = graph.variables();
      for (size_t i = variables.size() - 8; i < variables.size(); ++i) last.emplace_back(variables[i]);
      return last;
    }();
    EXPECT_NE(Value(made[0]), start);
    for (size_t i = 0; i < 4; ++i) EXPECT_THAT(Value(made[4 + i]), Pointwise(FloatNear(1e-6f), Value(made[i]))) << i;
  };
  using Set = std::vector<Output>;
  check("Momentum", [&](const Set& s, bool rows) {
    return rows ? ops::ResourceSparseApplyMomentum(s[0], s[1], lr, grad, all, Number(0.9f), true)
                : ops::ResourceApplyMomentum(s[0], s[1], lr, grad, Number(0.9f), true);
  });
  check("KerasMomentum", [&](const Set& s, bool rows) {
    return rows ? ops::ResourceSparseApplyKerasMomentum(s[0], s[1], lr, grad, all, Number(0.9f))
                : ops::ResourceApplyKerasMomentum(s[0], s[1], lr, grad, Number(0.9f));
  });
  check("Adagrad", [&](const Set& s, bool rows) {
    return rows ? ops::ResourceSparseApplyAdagrad(s[0], s[1], lr, grad, all)
                : ops::ResourceApplyAdagrad(s[0], s[1], lr, grad);
  });
  check("KerasAdagrad", [&](const Set& s, bool rows) {
    return rows ? ops::ResourceSparseApplyKerasAdagrad(s[0], s[1], lr, Number(0.1f), grad, all)
                : ops::ResourceApplyKerasAdagrad(s[0], s[1], lr, Number(0.1f), grad);
  });
  check("Adam", [&](const Set& s, bool rows) {
    return rows ? ops::ResourceSparseApplyAdam(s[0], s[1], s[2], adam, grad, all, true)
                : ops::ResourceApplyAdam(s[0], s[1], s[2], adam, grad, true);
  });
  check("RMSProp", [&](const Set& s, bool rows) {
    return rows ? ops::ResourceSparseApplyRMSProp(s[0], s[1], s[2], rms, grad, all)
                : ops::ResourceApplyRMSProp(s[0], s[1], s[2], rms, grad);
  });
  check("CenteredRMSProp", [&](const Set& s, bool rows) {
    return rows ? ops::ResourceSparseApplyCenteredRMSProp(s[0], s[1], s[2], s[3], rms, grad, all)
                : ops::ResourceApplyCenteredRMSProp(s[0], s[1], s[2], s[3], rms, grad);
  });
  check("Ftrl", [&](const Set& s, bool rows) {
    return rows ? ops::ResourceSparseApplyFtrl(s[0], s[1], s[2], grad, all, ftrl)
                : ops::ResourceApplyFtrl(s[0], s[1], s[2], grad, ftrl);
  });
  check("FtrlV2", [&](const Set& s, bool rows) {
    return rows ? ops::ResourceSparseApplyFtrlV2(s[0], s[1], s[2], grad, all, ftrl, Number(0.1f))
                : ops::ResourceApplyFtrlV2(s[0], s[1], s[2], grad, ftrl, Number(0.1f));
  });
}

TEST_F(TrainingTest, OtherDTypesAndManyElements) {
  const ops::Variable w64(graph, Tensor::Scalar(1.0), {.name = "w64"});
  const ops::Variable w16(graph, Tensor::Scalar(bfloat16(1.0f)), {.name = "w16"});
  const ops::Variable big(graph, Shape{100001}, initializers::Ones(), {.name = "big"});
  Interpreter team(3);
  team.RunNode(ops::GlobalVariablesInitializer(graph));
  team.RunNode(ops::ResourceApplyGradientDescent(w64.handle(), ops::Const(graph, 0.25), ops::Const(graph, 2.0)));
  EXPECT_EQ(team.Run1(w64).scalar<double>(), 0.5);
  const auto half = [&](float x) { return ops::Const(graph, Tensor::Scalar(bfloat16(x))); };
  team.RunNode(ops::ResourceApplyGradientDescent(w16.handle(), half(0.25f), half(2.0f)));
  EXPECT_EQ(float(team.Run1(w16).scalar<bfloat16>()), 0.5f);
  team.RunNode(ops::ResourceApplyGradientDescent(big.handle(), Number(0.5f), big.value()));
  EXPECT_THAT(team.Run1(big).ToVector<float>(), ::testing::Each(0.5f));
}

TEST_F(TrainingTest, RefusesShapesThatDoNotFit) {
  const ops::Variable w = Var("w", {1, 2});
  const ops::Variable a = Var("a", {1, 2, 3});
  EXPECT_THROW(ops::ResourceApplyGradientDescent(w.handle(), Number(1), Vector({1})), InvalidArgumentError);
  EXPECT_THROW(ops::ResourceApplyGradientDescent(w.handle(), Vector({1}), Vector({1, 2})), InvalidArgumentError);
  EXPECT_THROW(ops::ResourceApplyAdagrad(w.handle(), a.handle(), Number(1), Vector({1, 2})), InvalidArgumentError);
  EXPECT_THROW(
      ops::ResourceApplyAdagrad(w.handle(), w.handle(), Number(1), ops::Const(graph, std::vector<double>{1, 2})),
      InvalidArgumentError);
  const Output fed = ops::Placeholder(graph, DType::kFloat32);
  Node* update = ops::ResourceApplyGradientDescent(w.handle(), Number(1), fed);
  Initialize();
  try {
    run.RunNode(update, {{fed, Tensor::Vector<float>({1, 2, 3})}});
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected a gradient of shape [2] for variable 'w'; got [3]"));
  }
  EXPECT_THAT(Value(w), ElementsAre(1, 2));
}

}  // namespace
}  // namespace cohort
