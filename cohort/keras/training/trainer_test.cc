// What callbacks see of a model, beside Fit.
#include "cohort/keras/training/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/testing/throws.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The state of a model stands alone: its trainer needs no Model.
TEST(TrainerTest, TrainsAStateThatNoModelHolds) {
  RegisterAll();
  const LayerTensor x = Input(Shape{1});
  const auto layers = std::make_shared<const LayerGraph>("Functional", "", std::vector<LayerTensor>{x},
                                                         std::vector<LayerTensor>{Dense(1, {.name = "last"})(x)});
  const auto state =
      std::make_shared<ModelState>(ModelOptions{.name = "alone"}, [&](const data::ElementSpec&) { return layers; });
  Trainer trainer(state);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { trainer.GetLearningRate(); }),
              AllOf(HasSubstr("call Compile"), HasSubstr("'alone'")));
  state->Compile({.optimizer = SGD({.learning_rate = 0.5}), .loss = "mse", .metrics = {"mae"}});
  const ModelData data(Counting(Shape{4, 1}), Counting(Shape{4, 1}));
  trainer.Fit(data, {.batch_size = 2, .verbose = 0});
  EXPECT_EQ(trainer.Iterations(), 2);
  EXPECT_EQ(trainer.GetLearningRate(), 0.5);
  EXPECT_FALSE(trainer.has_learning_rate_schedule());
  EXPECT_EQ(trainer.DirectionOf("mae"), MetricDirection::kDown);
  EXPECT_EQ(trainer.DirectionOf("nothing"), MetricDirection::kNone);
  EXPECT_THAT(trainer.WeightNames(), ElementsAre("last/kernel", "last/bias"));
}

TEST(TrainerTest, BacksUpInFitAlone) {
  RegisterAll();
  Sequential model({Input(Shape{1}), Dense(1)}, {.name = "idle"});
  model.Compile({.loss = "mse"});
  Trainer trainer(std::shared_ptr<ModelState>(&model.state(), [](ModelState*) {}));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { trainer.BackUpTraining(); }),
              AllOf(HasSubstr("callback of Fit"), HasSubstr("'idle'")));
}

}  // namespace
}  // namespace cohort::keras
