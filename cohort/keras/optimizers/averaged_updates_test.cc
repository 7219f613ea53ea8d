// Sums of gradients and moving averages of weights, which all of Keras's optimizers have. tests/interop compares the
// updates with Keras.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/optimizers/optimizer.h"
#include "cohort/ops/constant.h"
#include "cohort/registration.h"
#include "cohort/runtime/session.h"

namespace cohort::keras {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

class AveragedUpdatesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { RegisterAll(); }

  ops::Variable Table(const std::string& name) {
    return ops::Variable(graph, Tensor::FromValues(std::vector<float>{1, 2, 3, 4, 5, 6}, Shape{3, 2}), {.name = name});
  }
  // Row 2 twice, row 0 once; multiplied by `factor`.
  Gradient Rows() {
    const Output rows = ops::Const(graph, std::vector<float>{1, -1, 0.5f, 2, 0.25f, 1}, Shape{3, 2}) * factor;
    return Gradient(rows, ops::Const(graph, std::vector<int32_t>{2, 0, 2}),
                    ops::Const(graph, std::vector<int64_t>{3, 2}));
  }

  Graph graph;
  const Output factor = ops::Placeholder(graph, DType::kFloat32, Shape(), "factor");
};

template <typename Options>
std::pair<Options, Options> WithSums(Options options) {
  Options summing = options;
  summing.gradient_accumulation_steps = 3;
  return {options, summing};
}

// Three steps with the factors 1, 4 and -2 are one step with their mean, 1. Sparse gradients are summed, too.
TEST_F(AveragedUpdatesTest, StepsThatSumGradientsAreOneStepWithTheMean) {
  std::vector<std::pair<OptimizerPtr, OptimizerPtr>> all;
  const auto add = [&](auto make, const auto& options) {
    const auto [plain, summing] = WithSums(options);
    all.emplace_back(make(plain), make(summing));
  };
  add(&SGD, SGDOptions{.learning_rate = 0.1});
  add(&SGD, SGDOptions{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.1});
  add(&SGD, SGDOptions{.learning_rate = 0.1, .global_clipnorm = 0.5});
  add(&Adagrad, AdagradOptions{.learning_rate = 0.1, .clipnorm = 0.5});
  add(&Adam, AdamOptions{.learning_rate = 0.1, .amsgrad = true});
  add(&AdamW, AdamOptions{.learning_rate = 0.1});
  add(&RMSprop, RMSpropOptions{.learning_rate = 0.1, .momentum = 0.5, .centered = true});
  add(&Ftrl, FtrlOptions{.learning_rate = 0.1, .beta = 0.5});
  add(&Nadam, NadamOptions{.learning_rate = 0.1});
  add(&Adamax, AdamaxOptions{.learning_rate = 0.1});
  add(&Lion, LionOptions{.learning_rate = 0.1});
  add(&Adadelta, AdadeltaOptions{.learning_rate = 0.1, .clipvalue = 0.3});
  std::vector<ops::Variable> expected, got;
  std::vector<Node*> plain_steps, summing_steps;
  std::vector<std::unique_ptr<GraphOptimizer>> made;
  for (const auto& [plain, summing] : all) {
    expected.push_back(Table("expected"));
    got.push_back(Table("got"));
    made.push_back(plain->Make(graph));
    plain_steps.push_back(made.back()->Apply({{Gradient(ToDense(Rows())), expected.back()}}));
    made.push_back(summing->Make(graph));
    summing_steps.push_back(made.back()->Apply({{Rows(), got.back()}}));
  }
  Session session(graph);
  session.Run(ops::GlobalVariablesInitializer(graph));
  for (int update = 0; update < 3; ++update) {
    session.Run({{factor, Tensor::Scalar(1.0f)}}, {}, plain_steps);
    const std::vector<float> before = session.Run(got[1]).ToVector<float>();
    for (const float f : {1.0f, 4.0f}) {
      session.Run({{factor, Tensor::Scalar(f)}}, {}, summing_steps);
      EXPECT_EQ(session.Run(got[1]).ToVector<float>(), before) << "only the third step changes weights";
    }
    session.Run({{factor, Tensor::Scalar(-2.0f)}}, {}, summing_steps);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_THAT(session.Run(got[i]).ToVector<float>(),
                  Pointwise(FloatNear(2e-5f), session.Run(expected[i]).ToVector<float>()))
          << all[i].first->name() << " " << i << ", update " << update;
    }
  }
  EXPECT_EQ(session.Run(made[1]->iterations()).scalar<int64_t>(), 9) << "it counts steps";
}

TEST_F(AveragedUpdatesTest, AveragesFollowTheWeightsAndReplaceThem) {
  const ops::Variable w(graph, Tensor::Scalar(1.0f), {.name = "w"});
  const auto made =
      SGD({.learning_rate = 1.0, .use_ema = true, .ema_momentum = 0.75, .ema_overwrite_frequency = 3})->Make(graph);
  Node* apply = made->Apply({{Gradient(-factor), w}});
  std::vector<std::string> names;
  for (const ops::Variable& variable : made->variables()) names.push_back(variable.name());
  EXPECT_THAT(names, ElementsAre("SGD/iteration", "SGD/learning_rate", "w/SGD"));
  Node* swap = made->ChangeAverages(AveragesChange::kSwap);
  Node* overwrite = made->ChangeAverages(AveragesChange::kOverwriteWeights);
  Node* follow = made->ChangeAverages(AveragesChange::kFollowWeights);
  EXPECT_EQ(made->ChangeAverages(AveragesChange::kSwap), swap) << "it is added once";
  Session session(graph);
  session.Run(ops::GlobalVariablesInitializer(graph));
  const auto value = [&](const ops::Variable& variable) { return session.Run(variable).scalar<float>(); };
  const ops::Variable average = made->variables().back();
  float weight = 1.0f, mean = 0.0f;
  for (int step = 1; step <= 7; ++step) {
    session.Run({{factor, Tensor::Scalar(1.0f)}}, {}, {apply});
    weight += 1.0f;
    mean = step == 1 ? weight : 0.75f * mean + 0.25f * weight;
    if (step % 3 == 0) weight = mean;
    EXPECT_FLOAT_EQ(value(average), mean) << step;
    EXPECT_FLOAT_EQ(value(w), weight) << step;
  }
  session.Run(swap);
  EXPECT_FLOAT_EQ(value(w), mean);
  EXPECT_FLOAT_EQ(value(average), weight);
  session.Run(swap);
  EXPECT_FLOAT_EQ(value(w), weight);
  session.Run(overwrite);
  EXPECT_FLOAT_EQ(value(w), mean);
  session.Run({{factor, Tensor::Scalar(1.0f)}}, {}, {apply});
  session.Run(follow);
  EXPECT_EQ(value(average), value(w));
}

// Two workers make 500 steps each at the same time, without a change of the weight 1. Each moves the average by 0.001
// of its distance from the weight, so that exp(-1) of it is left. If one of two updates were lost, exp(-0.5) would be
// left.
TEST_F(AveragedUpdatesTest, UpdatesOfWorkersAddUp) {
  const ops::Variable w(graph, Tensor::Scalar(1.0f), {.name = "w"});
  const auto made =
      SGD({.learning_rate = 0.0, .use_ema = true, .ema_momentum = 0.999})->Make(graph, /*several_workers=*/true);
  std::vector<Node*> steps;
  for (int worker = 0; worker < 2; ++worker) steps.push_back(made->Apply({{Gradient(ops::Const(graph, 1.0f)), w}}));
  const ops::Variable average = made->variables().back();
  Node* begin_at_0 = average.Assign(0.0f);
  Session session(graph);
  session.Run(ops::GlobalVariablesInitializer(graph));
  session.Run({}, {}, steps);
  EXPECT_EQ(session.Run(average).scalar<float>(), 1.0f) << "the first update gives it the value of the weight";
  session.Run(begin_at_0);
  for (int step = 0; step < 500; ++step) session.Run({}, {}, steps);
  EXPECT_NEAR(session.Run(average).scalar<float>(), 1.0 - std::exp(-1.0), 2e-3);
}

TEST_F(AveragedUpdatesTest, GradientsAreDividedByTheScaleOfTheLoss) {
  const ops::Variable w(graph, Tensor::Scalar(1.0f), {.name = "w"});
  const auto made = SGD({.learning_rate = 1.0, .clipvalue = 0.5, .loss_scale_factor = 16.0})->Make(graph);
  Node* apply = made->Apply({{Gradient(factor), w}});
  Session session(graph);
  session.Run(ops::GlobalVariablesInitializer(graph));
  session.Run({{factor, Tensor::Scalar(4.0f)}}, {}, {apply});
  EXPECT_EQ(session.Run(w).scalar<float>(), 0.75f);
  session.Run({{factor, Tensor::Scalar(16.0f)}}, {}, {apply});
  EXPECT_EQ(session.Run(w).scalar<float>(), 0.25f) << "clips come after the division";
}

TEST_F(AveragedUpdatesTest, OptionsOutOfRangeAndMissingAveragesAreNamed) {
  const auto message = [](auto make) { return MessageOf<InvalidArgumentError>(make); };
  EXPECT_THAT(message([] { SGD({.use_ema = true, .ema_momentum = 1.5}); }), HasSubstr("ema_momentum in [0, 1]"));
  EXPECT_THAT(message([] { SGD({.use_ema = true, .ema_overwrite_frequency = 0}); }),
              HasSubstr("ema_overwrite_frequency of at least 1"));
  EXPECT_THAT(message([] { Adam({.gradient_accumulation_steps = 1}); }),
              HasSubstr("gradient_accumulation_steps of at least 2"));
  EXPECT_THAT(message([] { Adam({.loss_scale_factor = 0.0}); }), HasSubstr("loss_scale_factor > 0"));
  EXPECT_THAT(MessageOf<FailedPreconditionError>(
                  [&] { SGD({.use_ema = true})->Make(graph)->ChangeAverages(AveragesChange::kSwap); }),
              HasSubstr("has not been applied yet"));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { SGD()->Make(graph)->ChangeAverages(AveragesChange::kSwap); }),
              HasSubstr("use_ema=false"));
}

}  // namespace
}  // namespace cohort::keras
