// Keras optimizers in a graph: variables, sparse gradients, options. tests/interop compares their updates with Keras.
#include "cohort/keras/optimizers/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/state.h"
#include "tests/ops/interpreter.h"

namespace cohort::keras {
namespace {

using ::cohort::testing::Interpreter;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

class OptimizerTest : public ::testing::Test {
 protected:
  ops::Variable Table(const std::string& name) {
    return ops::Variable(graph, Tensor::FromValues(std::vector<float>{1, 2, 3, 4, 5, 6}, Shape{3, 2}), {.name = name});
  }
  // Row 2 twice, row 0 once.
  Gradient Rows() {
    return Gradient(ops::Const(graph, std::vector<float>{1, -1, 0.5f, 2, 0.25f, 1}, Shape{3, 2}),
                    ops::Const(graph, std::vector<int32_t>{2, 0, 2}), ops::Const(graph, std::vector<int64_t>{3, 2}));
  }
  std::vector<float> Value(Output value) { return run.Run1(value).ToVector<float>(); }
  void Initialize() { run.RunNode(ops::GlobalVariablesInitializer(graph)); }

  Graph graph;
  Interpreter run;
};

TEST_F(OptimizerTest, SparseGradientsDoWhatTheirDenseFormDoes) {
  const std::vector<OptimizerPtr> all = {SGD({.learning_rate = 0.1}),
                                         SGD({.learning_rate = 0.1, .momentum = 0.9}),
                                         Adagrad({.learning_rate = 0.1}),
                                         Adam({.learning_rate = 0.1}),
                                         Adam({.learning_rate = 0.1, .lazy = true}),
                                         AdamW({.learning_rate = 0.1, .weight_decay = 0.1}),
                                         RMSprop({.learning_rate = 0.1}),
                                         Ftrl({.learning_rate = 0.1}),
                                         Nadam({.learning_rate = 0.1}),
                                         Adamax({.learning_rate = 0.1}),
                                         Lion({.learning_rate = 0.1}),
                                         Adadelta({.learning_rate = 0.1, .weight_decay = 0.1}),
                                         SGD({.learning_rate = 0.1, .clipnorm = 0.5}),
                                         Adagrad({.learning_rate = 0.1, .global_clipnorm = 0.5}),
                                         SGD({.learning_rate = 0.1, .clipvalue = 0.3})};
  int number = 0;
  for (const OptimizerPtr& optimizer : all) {
    SCOPED_TRACE(optimizer->name() + " " + std::to_string(number));
    const ops::Variable sparse = Table("sparse" + std::to_string(number));
    const ops::Variable dense = Table("dense" + std::to_string(number++));
    const auto for_sparse = optimizer->Make(graph);
    const auto for_dense = optimizer->Make(graph);
    Node* of_rows = for_sparse->Apply({{Rows(), sparse}});
    Node* of_all = for_dense->Apply({{Gradient(ToDense(Rows())), dense}});
    Initialize();
    const std::vector<float> start = Value(sparse);
    for (int step = 0; step < 3; ++step) {
      run.RunNode(of_rows);
      run.RunNode(of_all);
    }
    EXPECT_NE(Value(sparse), start);
    EXPECT_THAT(Value(sparse), Pointwise(FloatNear(1e-5f), Value(dense)));
  }
}

TEST_F(OptimizerTest, VariablesStandInKerassOrder) {
  const ops::Variable a = Table("a");
  const ops::Variable b = Table("b");
  const auto names = [&](const OptimizerPtr& optimizer) {
    const auto made = optimizer->Make(graph);
    made->Apply({{Gradient(a.value()), a}, {Gradient(b.value()), b}});
    std::vector<std::string> all;
    for (const ops::Variable& variable : made->variables()) all.push_back(variable.name());
    return all;
  };
  EXPECT_THAT(names(Adam()),
              ElementsAre("adam/iteration", "adam/learning_rate", "a/adam", "a/adam_1", "b/adam", "b/adam_1"));
  EXPECT_THAT(names(Nadam()), ElementsAre("nadam/iteration", "nadam/learning_rate", "a/nadam", "a/nadam_1", "b/nadam",
                                          "b/nadam_1", "nadam/number"));
  EXPECT_EQ(names(Lion()).size(), 4u);
  // The op's momentum is no variable of Keras's optimizer without one.
  EXPECT_THAT(names(RMSprop({.learning_rate = PiecewiseConstantDecay({5}, {1.0, 2.0})})),
              ElementsAre("rmsprop/iteration", "a/rmsprop", "b/rmsprop"));
}

TEST_F(OptimizerTest, TheRateIsAVariableAndIterationsCount) {
  const ops::Variable w(graph, Tensor::Scalar(1.0f), {.name = "w"});
  const auto sgd = SGD({.learning_rate = 0.5})->Make(graph);
  Node* apply = sgd->Apply({{Gradient(ops::Const(graph, 1.0f)), w}});
  Node* slower = sgd->learning_rate_variable().Assign(ops::Const(graph, 0.125f));
  Initialize();
  run.RunNode(apply);
  EXPECT_EQ(Value(w)[0], 0.5f);
  run.RunNode(slower);
  run.RunNode(apply);
  EXPECT_EQ(Value(w)[0], 0.375f);
  EXPECT_EQ(run.Run1(sgd->iterations()).scalar<int64_t>(), 2);
  EXPECT_EQ(Value(sgd->learning_rate())[0], 0.125f);
  // A second copy of the step, as another worker has it, counts on.
  Node* copy = sgd->Apply({{Gradient(ops::Const(graph, 1.0f)), w}});
  run.RunNode(copy);
  EXPECT_EQ(Value(w)[0], 0.25f);
  EXPECT_EQ(run.Run1(sgd->iterations()).scalar<int64_t>(), 3);
}

TEST_F(OptimizerTest, ASchedulesRateFollowsTheIterations) {
  const ops::Variable w(graph, Tensor::Scalar(0.0f), {.name = "w"});
  const auto sgd = SGD({.learning_rate = PiecewiseConstantDecay({1}, {1.0, 0.25})})->Make(graph);
  EXPECT_FALSE(sgd->learning_rate_variable().valid());
  Node* apply = sgd->Apply({{Gradient(ops::Const(graph, -1.0f)), w}});
  Initialize();
  for (const float expected : {1.0f, 2.0f, 2.25f, 2.5f}) {
    run.RunNode(apply);
    EXPECT_EQ(Value(w)[0], expected);
  }
}

// A rule of a program's own: var -= lr * 0.5^t * g.
class FadingRule final : public train::UpdateRule {
 public:
  std::vector<train::NamedNumber> powers() const override { return {fade_}; }
  Node* Update(const train::UpdateArgs& a) const override {
    return ops::AssignSubVariableOp(a.var(),
                                    ops::Mul(ops::Mul(a.learning_rate(), a.Power(fade_)), a.gradient().values));
  }

 private:
  const train::NamedNumber fade_ = {"fade", 0.5};
};

TEST_F(OptimizerTest, ARuleOfTheProgramsOwnRuns) {
  const auto rule = std::make_shared<FadingRule>();
  const OptimizerPtr fading = OptimizerFromRule(rule, {.learning_rate = 1.0, .clipvalue = 4.0, .name = "fading"});
  const ops::Variable w(graph, Tensor::Scalar(0.0f), {.name = "w"});
  const auto made = fading->Make(graph);
  Node* apply = made->Apply({{Gradient(ops::Const(graph, -8.0f)), w}});
  EXPECT_EQ(made->variables().size(), 2u);  // the power is computed, and no variable
  Initialize();
  for (const float expected : {2.0f, 3.0f, 3.5f}) {
    run.RunNode(apply);
    EXPECT_EQ(Value(w)[0], expected);
  }
  EXPECT_THAT(MessageOf<UnimplementedError>([&] { fading->Serialized(); }), HasSubstr("'fading'"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { OptimizerFromRule(rule, {}); }), HasSubstr("the name ''"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { OptimizerFromRule(nullptr, {.name = "f"}); }),
              HasSubstr("no rule"));
}

// A rule with a slot of a given name.
class AveragingRule final : public train::UpdateRule {
 public:
  std::vector<std::vector<train::Slot>> slots() const override { return {{{slot_}}}; }
  Node* Update(const train::UpdateArgs& a) const override {
    return ops::AssignSubVariableOp(a.var(), a.gradient().values);
  }
  explicit AveragingRule(const char* slot) : slot_(slot) {}

 private:
  const char* const slot_;
};

TEST_F(OptimizerTest, ASlotWithTheNameOfAnAddedOneIsRefused) {
  const CommonOptions averaging = {.use_ema = true, .name = "own"};
  const CommonOptions summing = {.gradient_accumulation_steps = 2, .name = "own"};
  const auto average = std::make_shared<AveragingRule>("average");
  const auto sum = std::make_shared<AveragingRule>("gradient_accumulator");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { OptimizerFromRule(average, averaging); }),
              AllOf(HasSubstr("'average', which use_ema adds"), HasSubstr("'own'")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { OptimizerFromRule(sum, summing); }),
              HasSubstr("'gradient_accumulator', which gradient_accumulation_steps adds"));
  EXPECT_NE(OptimizerFromRule(average, summing), nullptr);
  EXPECT_NE(OptimizerFromRule(sum, averaging), nullptr);
}

TEST_F(OptimizerTest, OptionsOutOfRangeAreNamed) {
  const auto message = [](auto make) { return MessageOf<InvalidArgumentError>(make); };
  EXPECT_THAT(message([] { Adam({.clipnorm = 1.0, .clipvalue = 1.0}); }),
              HasSubstr("at most one of clipnorm, clipvalue and global_clipnorm"));
  EXPECT_THAT(message([] { SGD({.momentum = 1.5}); }), AllOf(HasSubstr("momentum in [0, 1]"), HasSubstr("1.5")));
  EXPECT_THAT(message([] { SGD({.learning_rate = -1}); }), HasSubstr("learning_rate"));
  EXPECT_THAT(message([] { SGD({.clipnorm = 0.0}); }), HasSubstr("clipnorm > 0"));
  EXPECT_THAT(message([] { Adam({.beta_2 = 1.0}); }), HasSubstr("beta_2"));
  EXPECT_THAT(message([] { Adam({.amsgrad = true, .lazy = true}); }), HasSubstr("one of lazy and amsgrad"));
  EXPECT_THAT(message([] { Lion({.beta_1 = 0.0}); }), HasSubstr("beta_1 in (0, 1]"));
  EXPECT_THAT(message([] { Nadam({.beta_1 = 1.0}); }), AllOf(HasSubstr("Nadam"), HasSubstr("beta_1")));
  EXPECT_THAT(message([] { Adadelta({.rho = 1.0}); }), HasSubstr("rho"));
  EXPECT_THAT(message([] { Ftrl({.learning_rate_power = 0.5}); }), HasSubstr("learning_rate_power"));
  EXPECT_THAT(message([] { ExponentialDecay({.initial_learning_rate = 0.1, .decay_steps = 0, .decay_rate = 0.9}); }),
              HasSubstr("decay_steps > 0"));
  EXPECT_THROW(PiecewiseConstantDecay({3, 2}, {1, 2, 3}), InvalidArgumentError);
  EXPECT_THROW(PiecewiseConstantDecay({3}, {1, 2, 3}), InvalidArgumentError);
}

TEST_F(OptimizerTest, EveryNameResolvesAndAnUnknownOneListsThem) {
  for (const std::string& name : OptimizerNames()) EXPECT_NE(OptimizerByName(name), nullptr) << name;
  EXPECT_EQ(OptimizerArgument("RMSprop").get()->name(), "rmsprop");
  EXPECT_EQ(OptimizerArgument("SGD").get()->name(), "SGD");
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { OptimizerByName("adamx"); }),
              AllOf(HasSubstr("'adamx'"), HasSubstr("sgd, adagrad, adam, adamw, rmsprop, ftrl")));
}

}  // namespace
}  // namespace cohort::keras
