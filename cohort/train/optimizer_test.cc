#include "cohort/train/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/state.h"
#include "cohort/train/update_rules.h"
#include "tests/ops/interpreter.h"

namespace cohort::train {
namespace {

using ::cohort::testing::Interpreter;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// loss = g . w: the gradient of w is g in every step.
class OptimizerTest : public ::testing::Test {
 protected:
  static constexpr int kSteps = 3;
  const std::vector<double> start = {1.0, -2.0, 0.5};
  const std::vector<double> g = {0.5, -1.0, 3.0};

  ops::Variable Weights() { return ops::Variable(graph, Tensor::Vector<float>({1.0f, -2.0f, 0.5f}), {.name = "w"}); }
  Output Loss(const ops::Variable& w) {
    return ops::Sum(ops::Mul(w, ops::Const(graph, std::vector<float>{0.5f, -1.0f, 3.0f})));
  }
  void Initialize() { run.RunNode(ops::GlobalVariablesInitializer(graph)); }
  std::vector<float> Value(const ops::Variable& variable) { return run.Run1(variable).ToVector<float>(); }

  // Runs the optimizer against `formula(t, i, w)`, which returns the new w[i] of step t = 1, 2, 3.
  void Check(Optimizer& optimizer, const std::function<double(int, size_t, double)>& formula) {
    const ops::Variable w = Weights();
    Node* train = optimizer.Minimize(Loss(w));
    Initialize();
    std::vector<double> expected = start;
    for (int t = 1; t <= kSteps; ++t) {
      run.RunNode(train);
      const std::vector<float> actual = Value(w);
      for (size_t i = 0; i < 3; ++i) {
        expected[i] = formula(t, i, expected[i]);
        EXPECT_NEAR(actual[i], expected[i], 2e-6) << "step " << t << ", element " << i;
      }
    }
  }

  Graph graph;
  Interpreter run;
};

TEST_F(OptimizerTest, GradientDescent) {
  GradientDescentOptimizer optimizer(0.1);
  Check(optimizer, [&](int, size_t i, double w) { return w - 0.1 * g[i]; });
  EXPECT_TRUE(optimizer.variables().empty());
}

TEST_F(OptimizerTest, Momentum) {
  MomentumOptimizer optimizer(0.1, 0.9);
  std::vector<double> a(3, 0.0);
  Check(optimizer, [&](int, size_t i, double w) {
    a[i] = 0.9 * a[i] + g[i];
    return w - 0.1 * a[i];
  });
  EXPECT_THAT(optimizer.slot_names(), ElementsAre("momentum"));
  EXPECT_EQ(optimizer.variables().at(0).name(), "w/Momentum");
}

TEST_F(OptimizerTest, NesterovMomentum) {
  MomentumOptimizer optimizer(0.1, 0.9, /*use_nesterov=*/true);
  std::vector<double> a(3, 0.0);
  Check(optimizer, [&](int, size_t i, double w) {
    a[i] = 0.9 * a[i] + g[i];
    return w - 0.1 * (g[i] + 0.9 * a[i]);
  });
}

TEST_F(OptimizerTest, Adagrad) {
  AdagradOptimizer optimizer(0.1);
  std::vector<double> a(3, 0.1);
  Check(optimizer, [&](int, size_t i, double w) {
    a[i] += g[i] * g[i];
    return w - 0.1 * g[i] / std::sqrt(a[i]);
  });
  EXPECT_THROW(AdagradOptimizer(0.1, 0.0), InvalidArgumentError);
}

TEST_F(OptimizerTest, Adam) {
  AdamOptimizer optimizer(0.1);
  std::vector<double> m(3, 0.0);
  std::vector<double> v(3, 0.0);
  Check(optimizer, [&](int t, size_t i, double w) {
    m[i] += (g[i] - m[i]) * 0.1;
    v[i] += (g[i] * g[i] - v[i]) * 0.001;
    const double rate = 0.1 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    return w - rate * m[i] / (std::sqrt(v[i]) + 1e-8);
  });
  std::vector<std::string> names;
  for (const ops::Variable& variable : optimizer.variables()) names.push_back(variable.name());
  EXPECT_THAT(names, ElementsAre("beta1_power", "beta2_power", "w/Adam", "w/Adam_1"));
  EXPECT_NEAR(run.Run1(optimizer.variables()[0]).scalar<float>(), std::pow(0.9, 4), 1e-6);
}

TEST_F(OptimizerTest, RMSProp) {
  RMSPropOptimizer optimizer(0.01, 0.9, 0.5);
  std::vector<double> rms(3, 1.0);
  std::vector<double> mom(3, 0.0);
  Check(optimizer, [&](int, size_t i, double w) {
    rms[i] += (g[i] * g[i] - rms[i]) * 0.1;
    mom[i] = 0.5 * mom[i] + 0.01 * g[i] / std::sqrt(rms[i] + 1e-10);
    return w - mom[i];
  });
  EXPECT_EQ(optimizer.variables().at(0).name(), "w/RMSProp");
  EXPECT_EQ(optimizer.variables().at(1).name(), "w/RMSProp_1");
}

TEST_F(OptimizerTest, CenteredRMSProp) {
  RMSPropOptimizer optimizer(0.01, 0.9, 0.0, 1e-3, /*centered=*/true);
  std::vector<double> rms(3, 1.0);
  std::vector<double> mean(3, 0.0);
  Check(optimizer, [&](int, size_t i, double w) {
    rms[i] += (g[i] * g[i] - rms[i]) * 0.1;
    mean[i] += (g[i] - mean[i]) * 0.1;
    return w - 0.01 * g[i] / std::sqrt(rms[i] - mean[i] * mean[i] + 1e-3);
  });
  EXPECT_THAT(optimizer.slot_names(), ElementsAre("mg", "momentum", "rms"));
}

TEST_F(OptimizerTest, Adadelta) {
  AdadeltaOptimizer optimizer(0.5, 0.9, 1e-3);
  std::vector<double> accum(3, 0.0), update(3, 0.0);
  Check(optimizer, [&](int, size_t i, double w) {
    accum[i] = 0.9 * accum[i] + 0.1 * g[i] * g[i];
    const double step = std::sqrt(update[i] + 1e-3) / std::sqrt(accum[i] + 1e-3) * g[i];
    update[i] = 0.9 * update[i] + 0.1 * step * step;
    return w - 0.5 * step;
  });
  EXPECT_THAT(optimizer.slot_names(), ElementsAre("accum", "accum_update"));
}

TEST_F(OptimizerTest, Ftrl) {
  FtrlOptimizer optimizer(0.5, {.l1_regularization_strength = 0.1,
                                .l2_regularization_strength = 0.2,
                                .l2_shrinkage_regularization_strength = 0.05,
                                .beta = 0.3});
  std::vector<double> accum(3, 0.1), linear(3, 0.0);
  Check(optimizer, [&](int, size_t i, double w) {
    const double next = accum[i] + g[i] * g[i];
    linear[i] += g[i] + 2 * 0.05 * w - (std::sqrt(next) - std::sqrt(accum[i])) * w / 0.5;
    const double q = std::sqrt(next) / 0.5 + 2 * (0.2 + 0.3 / (2 * 0.5));
    accum[i] = next;
    return (std::clamp(linear[i], -0.1, 0.1) - linear[i]) / q;
  });
  EXPECT_THAT(optimizer.slot_names(), ElementsAre("accum", "linear"));
  EXPECT_EQ(optimizer.variables().at(0).name(), "w/Ftrl");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { FtrlOptimizer(0.5, {.learning_rate_power = 0.5}); }),
              HasSubstr("learning_rate_power"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { FtrlOptimizer(0.5, {.initial_accumulator_value = -1.0}); }),
              HasSubstr("initial_accumulator_value"));
}

// A rule of a program's own: var -= rate * 0.5^t * g.
class FadingRule final : public UpdateRule {
 public:
  std::vector<std::vector<Slot>> slots() const override { return {{{"kept", 3.0}}, {{"scratch", 0.0, false}}}; }
  std::vector<NamedNumber> powers() const override { return {fade_}; }
  Node* Update(const UpdateArgs& a) const override {
    const Output step = ops::Mul(ops::Mul(a.learning_rate(), a.Power(fade_)), a.gradient().values);
    return ops::AssignSubVariableOp(a.var(), step);
  }

 private:
  const NamedNumber fade_ = {"fade", 0.5};
};

TEST_F(OptimizerTest, ARuleOfTheProgramsOwnRuns) {
  Optimizer optimizer("Fading", 0.1, std::make_shared<FadingRule>());
  Check(optimizer, [&](int t, size_t i, double w) { return w - 0.1 * std::pow(0.5, t) * g[i]; });
  const auto names = [](const std::vector<ops::Variable>& variables) {
    std::vector<std::string> all;
    for (const ops::Variable& variable : variables) all.push_back(variable.name());
    return all;
  };
  EXPECT_THAT(names(optimizer.variables()), ElementsAre("fade_power", "w/Fading", "w/Fading_1"));
  EXPECT_THAT(names(optimizer.saved_variables()), ElementsAre("fade_power", "w/Fading"));
  EXPECT_EQ(Value(optimizer.variables()[1])[0], 3.0f);
}

// Uses the number `number`, and a power and a slot of the given names.
class NumberRule final : public UpdateRule {
 public:
  NumberRule(NamedNumber number, std::string power, std::string slot)
      : number_(std::move(number)), power_(std::move(power)), slot_(std::move(slot)) {}
  std::vector<std::vector<Slot>> slots() const override { return {{{"kept"}}}; }
  std::vector<NamedNumber> powers() const override { return {{"fade", 1.0}}; }
  Node* Update(const UpdateArgs& a) const override {
    a.slot(slot_);
    const Output factor = ops::Mul(a.Number(number_), a.Power({power_, 1.0}));
    return ops::AssignSubVariableOp(a.var(), ops::Mul(factor, a.gradient().values));
  }

 private:
  const NamedNumber number_;
  const std::string power_, slot_;
};

// The number of the rule has the name of the weight decay, then the name of the variable of the power.
TEST_F(OptimizerTest, NumbersOfOneNameKeepTheirValues) {
  for (const char* name : {"decay", "fade_power"}) {
    const Output iterations = ops::Const(graph, int64_t{0});
    const auto rule = std::make_shared<NumberRule>(NamedNumber{name, 0.25}, "fade", "kept");
    Optimizer optimizer("Decayed", 0.5, WithWeightDecay(rule, {"decay", 0.1}), iterations);
    Check(optimizer, [&](int, size_t i, double w) { return w - 0.5 * 0.1 * w - 0.25 * g[i]; });
  }
}

TEST_F(OptimizerTest, ARuleThatUsesWhatItDidNotNameIsRefused) {
  const ops::Variable w = Weights();
  const ops::Variable step = ops::GetOrCreateGlobalStep(graph);
  const auto message = [&](const char* power, const char* slot, Output iterations) {
    Optimizer optimizer("Own", 0.1, std::make_shared<NumberRule>(NamedNumber{"rate", 1.0}, power, slot), iterations);
    return MessageOf<InvalidArgumentError>([&] { optimizer.Minimize(Loss(w), {}, {w}); });
  };
  EXPECT_THAT(message("fad", "kept", {}), AllOf(HasSubstr("'Own' (fade)"), HasSubstr("got 'fad'")));
  EXPECT_THAT(message("fad", "kept", step.value()), AllOf(HasSubstr("'Own' (fade)"), HasSubstr("got 'fad'")));
  EXPECT_THAT(message("fade", "kep", {}),
              AllOf(HasSubstr("'Own' (kept)"), HasSubstr("variable 'w'"), HasSubstr("got 'kep'")));
}

TEST_F(OptimizerTest, ABadRuleIsNamed) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Optimizer("Fading", 0.1, nullptr); }), HasSubstr("'Fading'"));
  const Output beta = ops::Const(graph, 0.9f);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { AdamOptimizer(0.1, beta); }), HasSubstr("beta1 of 'Adam'"));
}

TEST_F(OptimizerTest, TheGlobalStepCountsAndTheRateMayFollowIt) {
  const ops::Variable step = ops::GetOrCreateGlobalStep(graph);
  EXPECT_EQ(step, ops::GetOrCreateGlobalStep(graph));
  EXPECT_FALSE(step.trainable());
  const ops::Variable w = Weights();
  const Output rate =
      ops::Mul(ops::Const(graph, 0.1), ops::Cast(ops::Add(step, ops::Const(graph, int64_t{1})), DType::kFloat64));
  GradientDescentOptimizer optimizer(rate);
  Node* train = optimizer.Minimize(Loss(w), step);
  EXPECT_EQ(train->name(), "GradientDescent");
  Initialize();
  double expected = 1.0;
  for (int t = 1; t <= kSteps; ++t) {
    run.RunNode(train);
    expected -= 0.1 * t * 0.5;
    EXPECT_NEAR(Value(w)[0], expected, 1e-6);
    EXPECT_EQ(run.Run1(step).scalar<int64_t>(), t);
  }
}

TEST_F(OptimizerTest, OnlyTrainableVariablesThatTheLossDependsOnChange) {
  const ops::Variable w = Weights();
  const ops::Variable frozen(graph, Tensor::Scalar(3.0f), {.name = "frozen", .trainable = false});
  const ops::Variable unused(graph, Tensor::Scalar(4.0f), {.name = "unused"});
  GradientDescentOptimizer optimizer(0.1);
  const std::vector<GradientAndVariable> pairs = optimizer.ComputeGradients(ops::Mul(Loss(w), frozen));
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_TRUE(pairs[0].gradient.exists());
  EXPECT_FALSE(pairs[1].gradient.exists());
  Node* train = optimizer.ApplyGradients(pairs);
  Initialize();
  run.RunNode(train);
  EXPECT_NEAR(Value(w)[0], 1.0 - 0.1 * 3 * 0.5, 1e-6);
  EXPECT_EQ(Value(frozen)[0], 3.0f);
  EXPECT_EQ(Value(unused)[0], 4.0f);
}

TEST_F(OptimizerTest, ErrorsNameTheVariables) {
  const ops::Variable w = Weights();
  GradientDescentOptimizer optimizer(0.1);
  const std::vector<GradientAndVariable> none = optimizer.ComputeGradients(ops::Const(graph, 1.0f), {w});
  try {
    optimizer.ApplyGradients(none);
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("No gradients provided for any variable: [w]"));
  }
  Graph empty;
  EXPECT_THROW(optimizer.ComputeGradients(ops::Const(empty, 1.0f)), InvalidArgumentError);
}

TEST_F(OptimizerTest, UpdatesAndSlotsStandBesideTheirVariable) {
  int round_robin = 0;
  ops::Variable a;
  ops::Variable b;
  AdamOptimizer optimizer(0.1);
  Node* train = nullptr;
  ops::Variable step;
  {
    const DeviceScope ps(graph, [&](const NodeDraft& draft) -> std::string {
      if (draft.op != "VarHandleOp") return MergeDevices("/job:worker", draft.device);
      return "/job:ps/task:" + std::to_string(round_robin++ % 2);
    });
    step = ops::GetOrCreateGlobalStep(graph);
    a = ops::Variable(graph, Tensor::Scalar(1.0f), {.name = "a"});
    b = ops::Variable(graph, Tensor::Scalar(2.0f), {.name = "b"});
    train = optimizer.Minimize(ops::Mul(a, b), step);
  }
  EXPECT_EQ(round_robin, 3);  // the slots have asked for no device
  EXPECT_EQ(a.handle().node->device(), "/job:ps/task:1");
  for (const ops::Variable& own : optimizer.variables()) {
    const std::string expected = own.name().substr(0, 2) == "b/" ? "/job:ps/task:0" : "/job:ps/task:1";
    EXPECT_EQ(own.handle().node->device(), expected) << own.name();
    EXPECT_EQ(own.initializer()->device(), expected) << own.name();
    EXPECT_FALSE(own.trainable()) << own.name();
  }
  EXPECT_EQ(graph.FindNode("Adam/update_a/ResourceApplyAdam")->device(), "/job:ps/task:1");
  EXPECT_EQ(graph.FindNode("Adam/update_b/ResourceApplyAdam")->device(), "/job:ps/task:0");
  EXPECT_EQ(train->device(), step.handle().node->device());
  // The rate is there on both devices, so that no step sends it.
  int rates = 0;
  for (const Node* node : graph.nodes()) rates += node->name().find("learning_rate") != std::string::npos;
  EXPECT_EQ(rates, 2);
}

class ClipGradientsTest : public OptimizerTest {
 protected:
  // A dense gradient, none, and a sparse one whose two rows are the same.
  std::vector<GradientAndVariable> Gradients(const std::vector<float>& dense) {
    const ops::Variable w = Weights();
    const ops::Variable unused(graph, Tensor::Scalar(1.0f), {.name = "unused"});
    const ops::Variable table(graph, Tensor::Vector<float>({1, 2, 3}), {.name = "table"});
    const Gradient rows(ops::Const(graph, std::vector<float>{2, 2}), ops::Const(graph, std::vector<int32_t>{1, 1}),
                        ops::Const(graph, std::vector<int32_t>{3}));
    return {{Gradient(ops::Const(graph, dense)), w}, {Gradient(), unused}, {rows, table}};
  }
};

TEST_F(ClipGradientsTest, AllAreScaledByOneFactor) {
  const auto pairs = Gradients({1, 0, -4});  // 1 + 16 + 4 + 4: the norm is 5
  Output norm;
  const auto clipped = ClipByGlobalNorm(pairs, 2.5f, &norm);
  ASSERT_EQ(clipped.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(clipped[i].variable, pairs[i].variable);
  EXPECT_FLOAT_EQ(run.Run1(norm).scalar<float>(), 5);
  EXPECT_THAT(run.Run1(clipped[0].gradient.values).ToVector<float>(), ElementsAre(0.5f, 0, -2));
  EXPECT_FALSE(clipped[1].gradient.exists());
  EXPECT_TRUE(clipped[2].gradient.is_sparse());
  EXPECT_THAT(run.Run1(clipped[2].gradient.values).ToVector<float>(), ElementsAre(1, 1));
  EXPECT_EQ(clipped[2].gradient.indices, pairs[2].gradient.indices);
  const auto untouched = ClipByGlobalNorm(pairs, 5.5f);
  EXPECT_THAT(run.Run1(untouched[0].gradient.values).ToVector<float>(), ElementsAre(1, 0, -4));
  EXPECT_THROW(ClipByGlobalNorm(pairs, 0), InvalidArgumentError);
  EXPECT_THROW(ClipByGlobalNorm({pairs[1]}, 1), InvalidArgumentError);
}

TEST_F(ClipGradientsTest, ANormThatIsNotFiniteMakesAllNan) {
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    const auto clipped = ClipByGlobalNorm(Gradients({1, bad, 2}), 1);
    for (const size_t i : {0, 2}) {
      for (const float value : run.Run1(clipped[i].gradient.values).ToVector<float>()) {
        EXPECT_TRUE(std::isnan(value)) << bad;
      }
    }
  }
}

// 1000 squares of 1/16, of which a sum in bfloat16 would stop at 1.
TEST_F(ClipGradientsTest, TheNormOfBfloat16IsSummedInFloat32) {
  const Output narrow = ops::Cast(ops::Const(graph, std::vector<float>(1024, 0.0625f)), DType::kBfloat16);
  Output norm;
  const auto clipped = ClipByGlobalNorm({{Gradient(narrow), Weights()}}, 1.0f, &norm);
  EXPECT_FLOAT_EQ(run.Run1(norm).scalar<float>(), 2);
  EXPECT_EQ(clipped[0].gradient.values.dtype(), DType::kBfloat16);
  EXPECT_FLOAT_EQ(run.Run1(ops::Cast(clipped[0].gradient.values, DType::kFloat32)).ToVector<float>()[1023], 0.03125f);
}

// Sparse gradients give what the dense ones of the same values give, for the rows that they name.
class SparseOptimizerTest : public OptimizerTest, public ::testing::WithParamInterface<std::string> {
 protected:
  std::unique_ptr<Optimizer> Make() {
    const std::string& name = GetParam();
    if (name == "GradientDescent") return std::make_unique<GradientDescentOptimizer>(0.1);
    if (name == "Momentum") return std::make_unique<MomentumOptimizer>(0.1, 0.9, true);
    if (name == "Adagrad") return std::make_unique<AdagradOptimizer>(0.1);
    if (name == "Adadelta") return std::make_unique<AdadeltaOptimizer>(0.1, 0.9, 1e-3);
    if (name == "Adam") return std::make_unique<AdamOptimizer>(0.1);
    if (name == "LazyAdam") return std::make_unique<LazyAdamOptimizer>(0.1);
    if (name == "RMSProp") return std::make_unique<RMSPropOptimizer>(0.1, 0.9, 0.5);
    return std::make_unique<RMSPropOptimizer>(0.1, 0.9, 0.5, 1e-3, true);
  }
};

TEST_P(SparseOptimizerTest, RepeatedRowsCountTogether) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const ops::Variable by_row(graph, Tensor::FromValues(values, Shape{3, 2}), {.name = "by_row"});
  const ops::Variable dense(graph, Tensor::FromValues(values, Shape{3, 2}), {.name = "dense"});
  const Output indices = ops::Const(graph, std::vector<int32_t>{2, 0, 2});
  const Output weights = ops::Const(graph, std::vector<float>{1, 2, 3, 4, 5, 6}, Shape{3, 2});
  const Output sparse_loss = ops::Sum(ops::Mul(by_row.Gather(indices), weights));
  // Row 0 has weights 3, 4; row 2 has 1 + 5, 2 + 6.
  const Output dense_loss =
      ops::Sum(ops::Mul(dense, ops::Const(graph, std::vector<float>{3, 4, 0, 0, 6, 8}, Shape{3, 2})));
  const std::unique_ptr<Optimizer> one = Make();
  const std::unique_ptr<Optimizer> other = Make();
  const std::vector<GradientAndVariable> gradients = one->ComputeGradients(sparse_loss, {by_row});
  EXPECT_TRUE(gradients[0].gradient.is_sparse());
  Node* train_sparse = one->ApplyGradients(gradients);
  Node* train_dense = other->Minimize(dense_loss, {}, {dense});
  Initialize();
  for (int t = 1; t <= kSteps; ++t) {
    run.RunNode(train_sparse);
    run.RunNode(train_dense);
    const std::vector<float> a = Value(by_row);
    const std::vector<float> b = Value(dense);
    for (size_t i : {0, 1, 4, 5}) EXPECT_NEAR(a[i], b[i], 2e-6) << "step " << t << ", element " << i;
    EXPECT_EQ(a[2], 3.0f);
    EXPECT_EQ(a[3], 4.0f);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SparseOptimizerTest,
                         ::testing::Values("GradientDescent", "Momentum", "Adagrad", "Adadelta", "Adam", "LazyAdam",
                                           "RMSProp", "Centered"),
                         [](const auto& info) { return info.param; });

TEST_F(OptimizerTest, OnlyLazyAdamLeavesRowsWithoutAGradientAsTheyAre) {
  AdamOptimizer adam(0.1);
  LazyAdamOptimizer lazy_adam(0.1);
  const ops::Variable rows(graph, Tensor::Vector<int32_t>({0, 2}), {.name = "rows", .trainable = false});
  std::vector<ops::Variable> tables;
  std::vector<Node*> train;
  for (Optimizer* optimizer : std::vector<Optimizer*>{&adam, &lazy_adam}) {
    tables.emplace_back(graph, Tensor::FromValues<float>({1, 2, 3, 4, 5, 6}, Shape{3, 2}),
                        ops::VariableOptions{.name = optimizer->name()});
    const Output loss = ops::Sum(ops::Square(tables.back().Gather(rows.value())));
    train.push_back(optimizer->Minimize(loss, {}, {tables.back()}));
  }
  Node* only_row_0 = rows.Assign(ops::Const(graph, std::vector<int32_t>{0, 0}));
  Initialize();
  for (Node* step : train) run.RunNode(step);
  const std::vector<float> before = Value(tables[1]);
  EXPECT_THAT(before, ::testing::Pointwise(::testing::FloatNear(1e-6f), Value(tables[0])));
  run.RunNode(only_row_0);
  for (Node* step : train) run.RunNode(step);
  const std::vector<float> by_adam = Value(tables[0]), by_lazy_adam = Value(tables[1]);
  for (size_t i : {0, 1}) EXPECT_NEAR(by_adam[i], by_lazy_adam[i], 1e-6);
  for (size_t i : {4, 5}) {
    EXPECT_LT(by_adam[i], before[i] - 0.01f);
    EXPECT_EQ(by_lazy_adam[i], before[i]);
  }
}

TEST_F(OptimizerTest, SlotsOfTwoOptimizersHaveNamesOfTheirOwn) {
  const ops::Variable w = Weights();
  MomentumOptimizer first(0.1, 0.9);
  MomentumOptimizer second(0.1, 0.9);
  first.Minimize(Loss(w));
  Node* train = second.Minimize(Loss(w), {}, {w});
  EXPECT_EQ(train->name(), "Momentum_1");
  EXPECT_EQ(first.slot(w, "momentum").name(), "w/Momentum");
  EXPECT_EQ(second.slot(w, "momentum").name(), "w/Momentum_1");
  EXPECT_FALSE(first.slot(w, "other").valid());
  first.Minimize(Loss(w), {}, {w});
  EXPECT_EQ(first.variables().size(), 1u);  // the slot is made once
}

}  // namespace
}  // namespace cohort::train
