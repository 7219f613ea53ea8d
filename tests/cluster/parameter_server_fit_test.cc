// Keras models on a ParameterServerStrategy, with real servers in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/distribute/local_cluster.h"
#include "cohort/distribute/strategies.h"
#include "cohort/keras/keras.h"
#include "cohort/registration.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

ServerOptions FitTestServer() {
  ServerOptions options;
  options.token = "parameter-server-fit-test";
  options.config.intra_op_parallelism_threads = 1;
  return options;
}

// The data of guide-002.
data::Dataset TrainingData() {
  const Tensor x = Tensor::FromValues(Floats{1, 1.5, 2, 2.5, 3, 3.5}, Shape{3, 2});
  const Tensor y = Tensor::FromValues(Floats{0.3f, 0.5f, 0.7f}, Shape{3, 1});
  return data::Dataset::FromTensorSlices({x, y}).Shuffle(10, 1).Repeat().Batch(64);
}
data::Dataset EvaluationData() {
  const Tensor x = Tensor::FromValues(Floats{4, 4.5, 5, 5.5, 6, 6.5}, Shape{3, 2});
  const Tensor y = Tensor::FromValues(Floats{0.8f, 0.9f, 1}, Shape{3, 1});
  return data::Dataset::FromTensorSlices({x, y}).Repeat().Batch(1);
}

class ParameterServerFitTest : public ::testing::Test {
 protected:
  ParameterServerFitTest() { RegisterAll(); }

  distribute::StrategyPtr Open(int workers, int ps, distribute::Partitioner partitioner = nullptr) {
    cluster_ = std::make_unique<distribute::LocalCluster>(
        distribute::LocalClusterOptions{.workers = workers, .ps = ps, .server = FitTestServer()});
    return distribute::ParameterServerStrategy(*cluster_->resolver(), std::move(partitioner),
                                               {.server = FitTestServer()});
  }
  static keras::Sequential Line(const distribute::StrategyPtr& strategy, const std::string& optimizer = "") {
    keras::Sequential model({keras::Dense(8, {.activation = "tanh"}), keras::Dense(1)},
                            {.seed = 3, .strategy = strategy});
    const keras::OptimizerArgument chosen =
        optimizer.empty() ? keras::OptimizerArgument(keras::Adagrad({.learning_rate = 0.05})) : optimizer.c_str();
    model.Compile({.optimizer = chosen, .loss = "mse", .metrics = {"mae"}});
    return model;
  }

  std::unique_ptr<distribute::LocalCluster> cluster_;  // outlives the strategy and the model of a test
};

TEST_F(ParameterServerFitTest, ThreeWorkersTrainTheModelOfTheGuide) {
  const auto strategy = Open(3, 2);
  keras::Sequential model({keras::Dense(1)}, {.seed = 1, .strategy = strategy});
  model.Compile({.optimizer = keras::Adagrad({.learning_rate = 0.05}), .loss = "mse"});
  const keras::History history = model.Fit(TrainingData(), {.epochs = 5, .verbose = 2, .steps_per_epoch = 10});
  ASSERT_EQ(history["loss"].size(), 5u);
  for (size_t epoch = 1; epoch < 5; ++epoch) EXPECT_LT(history["loss"][epoch], history["loss"][epoch - 1]);
  const keras::Logs logs = model.Evaluate(EvaluationData(), {.steps = 10});
  EXPECT_GT(keras::FindLog(logs, "loss").value(), 0.0);
  EXPECT_EQ(model.Predict(Tensor::FromValues(Floats{1, 2, 3, 4}, Shape{2, 2})).shape(), (Shape{2, 1}));
}

// One step at a time makes the updates of one device, whole or in parts.
TEST_F(ParameterServerFitTest, OneWorkerMakesTheUpdatesOfOneDevice) {
  const auto train = [](const distribute::StrategyPtr& strategy, const char* optimizer) {
    keras::Sequential model = Line(strategy, optimizer);
    const keras::History history =
        model.Fit(TrainingData(), {.epochs = 2, .verbose = 0, .steps_per_epoch = 6, .signal_check = false});
    Floats all(history["loss"].begin(), history["loss"].end());
    all.push_back(static_cast<float>(history["mae"].back()));
    for (const Tensor& weight : model.GetWeights()) {
      const Floats values = weight.ToVector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  for (const char* optimizer : {"sgd", "adam"}) {
    const Floats expected = train(nullptr, optimizer);
    EXPECT_EQ(train(Open(1, 1), optimizer), expected) << optimizer;
    EXPECT_EQ(train(Open(1, 2, distribute::FixedShardsPartitioner(2)), optimizer), expected) << optimizer;
    EXPECT_EQ(train(Open(1, 2, distribute::FixedShardsPartitioner(5)), optimizer), expected) << optimizer;
  }
}

TEST_F(ParameterServerFitTest, CallsThatNeedAnOrderOfBatchesAreRefused) {
  const auto strategy = Open(1, 1);
  keras::Sequential model = Line(strategy);
  const auto fit = [&](keras::FitOptions options) {
    return MessageOf<InvalidArgumentError>([&] { model.Fit(TrainingData(), options); });
  };
  EXPECT_THAT(fit({}), HasSubstr("`steps_per_epoch` must be specified with `ParameterServerStrategy`."));
  EXPECT_THAT(fit({.verbose = 1, .steps_per_epoch = 1}), HasSubstr("`verbose=1` is not allowed"));
  EXPECT_THAT(fit({.verbose = 0, .callbacks = {keras::TerminateOnNaN()}, .steps_per_epoch = 1}),
              AllOf(HasSubstr("Batch-level `Callback`s are not supported with `ParameterServerStrategy`."),
                    HasSubstr("TerminateOnNaN")));
  EXPECT_THAT(
      fit({.verbose = 0,
           .callbacks = {keras::LambdaCallback({.on_train_batch_end = [](int64_t, const keras::BatchLogs&) {}})},
           .steps_per_epoch = 1}),
      HasSubstr("LambdaCallback"));
  EXPECT_THAT(fit({.verbose = 0, .validation_data = EvaluationData(), .steps_per_epoch = 1}),
              HasSubstr("`validation_steps` must be specified"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { model.Evaluate(EvaluationData(), {}); }),
              HasSubstr("`steps` must be specified"));
}

TEST_F(ParameterServerFitTest, ValidationAndCallbacksOfEpochsWork) {
  const auto strategy = Open(2, 2);
  keras::Sequential model = Line(strategy);
  int epochs = 0;
  const keras::History history =
      model.Fit(TrainingData(), {.epochs = 50,
                                 .verbose = 0,
                                 .callbacks = {keras::EarlyStopping({.monitor = "val_loss", .patience = 1}),
                                               keras::LambdaCallback({.on_epoch_end =
                                                                          [&](int, keras::Logs& logs) {
                                                                            ++epochs;
                                                                            EXPECT_TRUE(keras::FindLog(logs, "mae"));
                                                                          }})},
                                 .validation_data = EvaluationData(),
                                 .steps_per_epoch = 5,
                                 .validation_steps = 3});
  EXPECT_EQ(history["val_loss"].size(), static_cast<size_t>(epochs));
  EXPECT_EQ(history["val_mae"].size(), static_cast<size_t>(epochs));
}

// Clipping by norm, regularizers and initial values see whole variables.
TEST_F(ParameterServerFitTest, NormsAreThoseOfWholeVariables) {
  const auto train = [](const distribute::StrategyPtr& strategy) {
    keras::Sequential model(
        {keras::Dense(6, {.activation = "tanh", .kernel_regularizer = keras::regularizers::L2(0.1)}), keras::Dense(1)},
        {.seed = 3, .strategy = strategy});
    model.Compile({.optimizer = keras::SGD({.learning_rate = 0.5, .clipnorm = 0.05}), .loss = "mse"});
    model.Fit(TrainingData(), {.verbose = 0, .steps_per_epoch = 5, .signal_check = false});
    Floats all;
    for (const Tensor& weight : model.GetWeights()) {
      const Floats values = weight.ToVector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  const Floats expected = train(nullptr);
  const Floats got = train(Open(1, 2, distribute::FixedShardsPartitioner(2)));
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6) << i;
}

// Files have whole weights, so they fit any number of parts. Backups continue a training on a new cluster.
TEST_F(ParameterServerFitTest, FilesFitAnyPartsAndBackupsContinue) {
  const cohort::testing::TempFolder folder;
  const Tensor x = Tensor::FromValues(Floats{1, 2, 3, 4}, Shape{2, 2});
  const std::string weights = folder.path() + "/line.weights.h5";
  const auto fit = [&](keras::Sequential& model, int epochs) {
    return model.Fit(TrainingData(),
                     {.epochs = epochs,
                      .verbose = 0,
                      .callbacks = {keras::BackupAndRestore({.backup_dir = folder.path(), .delete_checkpoint = false}),
                                    keras::ModelCheckpoint({.filepath = weights, .save_weights_only = true})},
                      .steps_per_epoch = 5});
  };
  Floats expected;
  {
    const auto strategy = Open(2, 2, distribute::FixedShardsPartitioner(2));
    keras::Sequential model = Line(strategy);
    EXPECT_EQ(fit(model, 2)["loss"].size(), 2u);
    expected = model.Predict(x).ToVector<float>();
  }
  {
    const auto strategy = Open(1, 3, distribute::FixedShardsPartitioner(3));
    keras::Sequential other = Line(strategy);
    other.Build(Shape{-1, 2});
    other.LoadWeights(weights);
    EXPECT_EQ(other.Predict(x).ToVector<float>(), expected);
  }
  const auto strategy = Open(2, 2, distribute::FixedShardsPartitioner(2));
  keras::Sequential model = Line(strategy);
  EXPECT_EQ(fit(model, 5)["loss"].size(), 3u) << "two of five epochs were trained before";
}

// A worker is lost between two epochs; the other one does its work.
TEST_F(ParameterServerFitTest, AWorkerMayBeLost) {
  const auto strategy = Open(2, 1);
  keras::Sequential model = Line(strategy);
  const keras::History history =
      model.Fit(TrainingData(), {.epochs = 4,
                                 .verbose = 0,
                                 .callbacks = {keras::LambdaCallback({.on_epoch_begin =
                                                                          [&](int epoch) {
                                                                            if (epoch == 1) cluster_->Stop("worker", 0);
                                                                            if (epoch == 3)
                                                                              cluster_->Restart("worker", 0);
                                                                          }})},
                                 .steps_per_epoch = 20});
  ASSERT_EQ(history["loss"].size(), 4u);
  EXPECT_LT(history["loss"].back(), history["loss"].front());
}

}  // namespace
}  // namespace cohort
