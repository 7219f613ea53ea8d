// Evaluations of Keras models on a ParameterServerStrategy, with real servers in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/distribute/testing/parameter_servers.h"
#include "cohort/keras/keras.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/reduction.h"

namespace cohort {
namespace {

class ParameterServerEvaluateTest : public distribute::ParameterServers {};

// A model whose loss is the mean of the targets, and examples that have their numbers as targets.
keras::Sequential MeanOfTargets(const distribute::StrategyPtr& strategy, int steps_per_execution) {
  keras::Sequential model({keras::Input(Shape{1}), keras::Dense(1, {.kernel_initializer = "zeros"})},
                          {.strategy = strategy});
  model.Compile({.optimizer = keras::SGD({.learning_rate = 0.0}),
                 .loss = "mae",
                 .metrics = {"mae"},
                 .steps_per_execution = steps_per_execution});
  return model;
}
std::vector<Tensor> Numbers(int64_t count) {
  Tensor x(DType::kFloat32, Shape{count, 1}), y(DType::kFloat32, Shape{count, 1});
  for (int64_t i = 0; i < count; ++i) {
    x.data<float>()[i] = 1;
    y.data<float>()[i] = static_cast<float>(i);
  }
  return {x, y};
}
double LossOf(const keras::Logs& logs) {
  EXPECT_EQ(keras::FindLog(logs, "loss"), keras::FindLog(logs, "mae"));
  return keras::FindLog(logs, "loss").value();
}

TEST_F(ParameterServerEvaluateTest, AnEvaluationTakesEachBatchOnce) {
  const std::vector<Tensor> numbers = Numbers(78);
  const data::Dataset dataset = data::Dataset::FromTensorSlices(numbers);
  // A dataset that does not say how many elements it has.
  const data::Dataset unknown = dataset.Filter(
      [](Graph&, const std::vector<Output>& element) { return std::vector<Output>{ops::Sum(element[1]) >= 0.0f}; });
  for (const int workers : {1, 3}) {
    const auto strategy = Open(workers, 2);
    for (const int steps_per_execution : {1, 4}) {
      keras::Sequential model = MeanOfTargets(strategy, steps_per_execution);
      const auto evaluate = [&](const keras::ModelData& data, int64_t steps) {
        return LossOf(model.Evaluate(data, {.batch_size = 1, .verbose = 0, .steps = steps}));
      };
      for (int i = 0; i < 2; ++i) EXPECT_DOUBLE_EQ(evaluate(dataset.Batch(1), 78), 38.5);
      EXPECT_DOUBLE_EQ(evaluate(dataset.Batch(1), 20), 9.5);
      EXPECT_DOUBLE_EQ(evaluate(dataset.Shuffle(78).Batch(2), 39), 38.5);
      EXPECT_DOUBLE_EQ(evaluate({numbers[0], numbers[1]}, 78), 38.5);
      EXPECT_DOUBLE_EQ(evaluate(dataset.Batch(1), 100), 38.5);  // there are no more
      EXPECT_DOUBLE_EQ(evaluate(unknown.Batch(1), 20), 9.5);
      EXPECT_DOUBLE_EQ(evaluate(unknown.Batch(1), 100), 38.5);
      const keras::History history = model.Fit(dataset.Batch(1), {.epochs = 3,
                                                                  .verbose = 0,
                                                                  .validation_data = dataset.Batch(1),
                                                                  .steps_per_epoch = 7,
                                                                  .validation_steps = 20});
      for (const double loss : history["val_loss"]) EXPECT_DOUBLE_EQ(loss, 9.5);
    }
  }
}

class AtTestBegin final : public keras::Callback {
 public:
  explicit AtTestBegin(std::function<void()> call) : call_(std::move(call)) {}
  void OnTestBegin() override { call_(); }

 private:
  const std::function<void()> call_;
};

TEST_F(ParameterServerEvaluateTest, AnEvaluationIsExactThoughAWorkerIsLost) {
  constexpr int64_t kBatches = 600;
  const auto strategy = Open(3, 1);
  keras::Sequential model = MeanOfTargets(strategy, 2);
  const data::Dataset dataset = data::Dataset::FromTensorSlices(Numbers(kBatches)).Batch(1);
  std::thread killer;
  const auto lose_worker =
      std::make_shared<AtTestBegin>([&] { killer = std::thread([&] { cluster_->Restart("worker", 1); }); });
  const keras::Logs logs = model.Evaluate(dataset, {.verbose = 0, .steps = kBatches, .callbacks = {lose_worker}});
  killer.join();
  EXPECT_DOUBLE_EQ(LossOf(logs), (kBatches - 1) / 2.0);
}

}  // namespace
}  // namespace cohort
