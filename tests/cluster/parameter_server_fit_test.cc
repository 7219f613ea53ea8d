// Keras models on a ParameterServerStrategy, with real servers in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "cohort/cluster/status/status_client.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/distribute/testing/parameter_servers.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/training/model_engine.h"
#include "cohort/keras/training/model_state.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/random.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Floats = std::vector<float>;

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

class ParameterServerFitTest : public distribute::ParameterServers {
 protected:
  static keras::Sequential Line(const distribute::StrategyPtr& strategy, const std::string& optimizer = "") {
    keras::Sequential model({keras::Dense(8, {.activation = "tanh"}), keras::Dense(1)},
                            {.seed = 3, .strategy = strategy});
    const keras::OptimizerArgument chosen =
        optimizer.empty() ? keras::OptimizerArgument(keras::Adagrad({.learning_rate = 0.05})) : optimizer.c_str();
    model.Compile({.optimizer = chosen, .loss = "mse", .metrics = {"mae"}});
    return model;
  }
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
  for (const char* optimizer : {"sgd", "adam", "nadam"}) {
    const Floats expected = train(nullptr, optimizer);
    EXPECT_EQ(train(Open(1, 1), optimizer), expected) << optimizer;
    EXPECT_EQ(train(Open(1, 2, distribute::FixedShardsPartitioner(2)), optimizer), expected) << optimizer;
    EXPECT_EQ(train(Open(1, 2, distribute::FixedShardsPartitioner(5)), optimizer), expected) << optimizer;
  }
}

TEST_F(ParameterServerFitTest, OneWorkerKeepsTheAveragesOfOneDevice) {
  const auto train = [](const distribute::StrategyPtr& strategy, int steps_per_execution) {
    keras::Sequential model({keras::Dense(8, {.activation = "tanh"}), keras::Dense(1)},
                            {.seed = 3, .strategy = strategy});
    model.Compile({.optimizer = keras::Adam(
                       {.learning_rate = 0.05, .use_ema = true, .ema_momentum = 0.7, .loss_scale_factor = 4.0}),
                   .loss = "mse",
                   .steps_per_execution = steps_per_execution});
    model.Fit(TrainingData(), {.epochs = 2, .verbose = 0, .steps_per_epoch = 6, .signal_check = false});
    Floats all;
    for (const Tensor& weight : model.GetWeights()) {
      const Floats values = weight.ToVector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  // The workers subtract from an average, and one device assigns to it. So roundings differ.
  const auto same = ::testing::Pointwise(::testing::FloatNear(1e-6f), train(nullptr, 1));
  EXPECT_THAT(train(Open(1, 1), 1), same);
  EXPECT_THAT(train(Open(1, 1), 3), same);
  EXPECT_THAT(train(Open(1, 2, distribute::FixedShardsPartitioner(2)), 1), same);
}

TEST_F(ParameterServerFitTest, SumsOfGradientsAreRefused) {
  keras::Sequential model({keras::Dense(1)}, {.strategy = Open(2, 1)});
  EXPECT_THAT(MessageOf<InvalidArgumentError>(
                  [&] { model.Compile({.optimizer = keras::SGD({.gradient_accumulation_steps = 4}), .loss = "mse"}); }),
              AllOf(HasSubstr("gradient_accumulation_steps"), HasSubstr("ParameterServerStrategy"), HasSubstr("4")));
}

TEST_F(ParameterServerFitTest, ExchangesOfWeightsAndAveragesAreRefused) {
  keras::Sequential model({keras::Dense(1)}, {.strategy = Open(2, 1)});
  EXPECT_THAT(
      MessageOf<InvalidArgumentError>([&] {
        model.Compile({.optimizer = keras::SGD({.use_ema = true, .ema_overwrite_frequency = 7}), .loss = "mse"});
      }),
      AllOf(HasSubstr("ema_overwrite_frequency"), HasSubstr("ParameterServerStrategy"), HasSubstr("7")));
  model.Compile({.optimizer = keras::SGD({.use_ema = true}), .loss = "mse"});
  const auto refused = AllOf(HasSubstr("SwapEMAWeights"), HasSubstr("ParameterServerStrategy"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                model.Fit(TrainingData(), {.verbose = 0, .callbacks = {keras::SwapEMAWeights()}, .steps_per_epoch = 2});
              }),
              refused);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                model.Evaluate(EvaluationData(), {.verbose = 0, .steps = 2, .callbacks = {keras::SwapEMAWeights()}});
              }),
              refused);
  model.Fit(TrainingData(), {.verbose = 0, .steps_per_epoch = 2});
}

// Layers that draw random numbers and layers with moving statistics make the same steps, also if a worker makes several
// steps each time it is asked. 7 steps are 3, 3 and 1.
TEST_F(ParameterServerFitTest, OneExecutionMakesSeveralSteps) {
  const Tensor x = Tensor::FromValues(Floats{1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5}, Shape{4, 2});
  const Tensor y = Tensor::FromValues(Floats{0.3f, 0.5f, 0.7f, 0.8f}, Shape{4, 1});
  const auto train = [&](const distribute::StrategyPtr& strategy, int steps_per_execution, bool on_chief = false) {
    data::Dataset dataset = data::Dataset::FromTensorSlices({x, y}).Shuffle(4, 5).Repeat().Batch(3);
    if (on_chief) {
      const data::ElementSpec spec = dataset.element_spec();
      dataset = dataset.Map([](const std::vector<Tensor>& element) { return element; }, spec);
    }
    keras::Sequential model({keras::Input(Shape{2}), keras::Dense(8, {.activation = "tanh"}),
                             keras::BatchNormalization(), keras::Dropout(0.4), keras::Dense(1)},
                            {.seed = 3, .strategy = strategy});
    model.Compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}, .steps_per_execution = steps_per_execution});
    const keras::History history =
        model.Fit(dataset, {.epochs = 2, .verbose = 0, .steps_per_epoch = 7, .signal_check = false});
    EXPECT_EQ(model.Iterations(), 14);
    Floats all(history["loss"].begin(), history["loss"].end());
    all.insert(all.end(), history["mae"].begin(), history["mae"].end());
    for (const Tensor& weight : model.GetWeights()) {
      const Floats values = weight.ToVector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  const Floats expected = train(nullptr, 1);
  EXPECT_EQ(train(Open(1, 2), 1), expected);
  EXPECT_EQ(train(Open(1, 2), 3), expected);
  EXPECT_EQ(train(Open(1, 2, distribute::FixedShardsPartitioner(2)), 3), expected);
  EXPECT_EQ(train(Open(1, 1), 3, /*on_chief=*/true), expected);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { train(nullptr, 2); }), HasSubstr("steps_per_execution"));
}

// The square of the difference between the random numbers of two steps.
class Difference final : public keras::Metric {
 public:
  Difference() : Metric("difference") {}
  std::vector<keras::MetricState> States() const override { return {{"sum", Shape()}, {"squares", Shape()}}; }
  std::vector<Output> Increments(const Output& y_true, const Output&, const Output&) const override {
    const Output shape = ops::Const(y_true.graph(), std::vector<int32_t>{1});
    const Output drawn = ops::Reshape(ops::Cast(ops::RandomUniform(shape), DType::kFloat64), std::vector<int64_t>{});
    return {drawn, drawn * drawn};
  }
  Output Result(const std::vector<Output>& states) const override {
    return states.at(1) + states.at(1) - states.at(0) * states.at(0);
  }
};

TEST_F(ParameterServerFitTest, TheStepsOfAnExecutionDrawDifferentNumbers) {
  const auto strategy = Open(1, 1);
  for (const int steps_per_execution : {1, 2}) {
    keras::Sequential model({keras::Dense(1)}, {.seed = 1, .strategy = strategy});
    model.Compile({.optimizer = "sgd",
                   .loss = "mse",
                   .metrics = {keras::MetricArgument(std::make_shared<Difference>())},
                   .steps_per_execution = steps_per_execution});
    const keras::History history = model.Fit(TrainingData(), {.verbose = 0, .steps_per_epoch = 2});
    EXPECT_GT(history["difference"].back(), 1e-6) << steps_per_execution;
  }
}

// The closure of the shorter last execution is made before the first step runs.
TEST_F(ParameterServerFitTest, AStepFunctionThatThrowsChangesNothing) {
  const auto strategy = Open(1, 1);
  keras::Sequential model({keras::Dense(1)}, {.seed = 1, .strategy = strategy});
  int calls = 0;
  bool fails = true;
  model.Compile({.optimizer = "sgd", .loss = "mse", .steps_per_execution = 3, .train_step = [&](auto& step) {
                   if (++calls > 1 && fails) throw OutOfRangeError("the program's own error");
                   keras::DefaultTrainStep(step);
                 }});
  const keras::FitOptions options = {.verbose = 0, .steps_per_epoch = 7};
  EXPECT_THAT(MessageOf<OutOfRangeError>([&] { model.Fit(TrainingData(), options); }),
              AllOf(HasSubstr("the program's own error"), Not(HasSubstr("at least one batch"))));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(model.Iterations(), 0);
  fails = false;
  model.Fit(TrainingData(), options);
  EXPECT_EQ(model.Iterations(), 7);
}

TEST_F(ParameterServerFitTest, AFileKeepsTheStepsOfAnExecution) {
  const cohort::testing::TempFolder folder;
  const std::string path = folder.path() + "/line.keras";
  const auto strategy = Open(1, 1);
  keras::Sequential model({keras::Dense(1)}, {.seed = 1, .strategy = strategy});
  model.Compile({.optimizer = "sgd", .loss = "mse", .steps_per_execution = 3});
  model.Fit(TrainingData(), {.verbose = 0, .steps_per_epoch = 3});
  keras::SaveModel(model, path);
  const keras::Model same = keras::LoadModel(path, {.strategy = strategy});
  EXPECT_EQ(same.state().compile_options()->steps_per_execution, 3);
  ::testing::internal::CaptureStderr();
  const keras::Model here = keras::LoadModel(path);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("steps_per_execution = 3"));
  EXPECT_EQ(here.state().compile_options()->steps_per_execution, 1);
}

// Models on one strategy share the parameter servers, so the names of their variables differ, by one prefix.
TEST_F(ParameterServerFitTest, TheVariablesOfASecondModelHaveItsPrefix) {
  const auto strategy = Open(1, 1);
  for (const std::string prefix : {"", "model_1/"}) {
    keras::Sequential model = Line(strategy, "adam");
    model.Fit(TrainingData(), {.verbose = 0, .steps_per_epoch = 1});
    int variables = 0;
    for (const VariableInfo* variable : model.state().engine().graph().variables()) {
      EXPECT_EQ(variable->name.substr(0, prefix.size()), prefix);
      EXPECT_THAT(variable->name.substr(prefix.size()), Not(HasSubstr("model_")));
      ++variables;
    }
    EXPECT_GT(variables, 4);
  }
}

// A dataset that needs this process is read here. Any other one is read by the workers, which an error shows.
TEST_F(ParameterServerFitTest, WorkersReadTheData) {
  const auto strategy = Open(2, 1);
  keras::Sequential model = Line(strategy);
  const auto fit = [&](const data::Dataset& dataset) {
    ::testing::internal::CaptureStderr();
    model.Fit(dataset, {.verbose = 0, .steps_per_epoch = 4});
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(fit(TrainingData()), Not(HasSubstr("this process reads the data")));
  std::atomic<int> calls{0};
  const auto count = [&](const std::vector<Tensor>& element) {
    ++calls;
    return element;
  };
  EXPECT_THAT(fit(TrainingData().Map(count, TrainingData().element_spec())),
              AllOf(HasSubstr("this process reads the data"), HasSubstr("Map")));
  EXPECT_GE(calls, 4);
  const auto broken = [](Graph& graph, const std::vector<Output>& element) {
    return std::vector<Output>{ops::Reshape(element[0], ops::Const(graph, std::vector<int32_t>{5, 2})), element[1]};
  };
  const data::Dataset bad = TrainingData().Map(broken);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { model.Fit(bad, {.verbose = 0, .steps_per_epoch = 4}); }),
              AllOf(HasSubstr("/job:worker"), HasSubstr("epoch 1")));
  // Tensors travel to the workers once; each worker repeats them.
  const Tensor x = Tensor::FromValues(Floats{1, 1.5, 2, 2.5, 3, 3.5}, Shape{3, 2});
  const Tensor y = Tensor::FromValues(Floats{0.3f, 0.5f, 0.7f}, Shape{3, 1});
  const keras::History history = model.Fit({x, y}, {.batch_size = 2, .epochs = 2, .verbose = 0, .steps_per_epoch = 9});
  EXPECT_EQ(history["mae"].size(), 2u);
  EXPECT_EQ(model.Iterations(), 4 + 4 + 2 * 9);
  const data::Dataset empty = TrainingData().Take(4).Skip(4);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { model.Fit(empty, {.verbose = 0, .steps_per_epoch = 1}); }),
              HasSubstr("at least one batch"));
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
  const auto strategy = Open(3, 1);
  keras::Sequential model = Line(strategy);
  EXPECT_EQ(fit(model, 5)["loss"].size(), 3u) << "two of five epochs were trained before, by two workers";
}

// With one batch of one example in an epoch, the losses say in which order the examples are read.
TEST_F(ParameterServerFitTest, ARestoredTrainingReadsInAnotherOrder) {
  Tensor x(DType::kFloat32, Shape{64, 1}), y(DType::kFloat32, Shape{64, 1});
  for (int64_t i = 0; i < 64; ++i) {
    x.data<float>()[i] = 0;
    y.data<float>()[i] = static_cast<float>(i);
  }
  const auto strategy = Open(1, 1);
  const auto fit = [&](int epochs, const std::string& backups) {
    keras::Sequential model({keras::Dense(1, {.use_bias = false})}, {.seed = 1, .strategy = strategy});
    model.Compile({.optimizer = "sgd", .loss = "mae"});
    return model.Fit({x, y},
                     {.batch_size = 1,
                      .epochs = epochs,
                      .verbose = 0,
                      .callbacks = {keras::BackupAndRestore({.backup_dir = backups, .delete_checkpoint = false})},
                      .steps_per_epoch = 1})["loss"];
  };
  const cohort::testing::TempFolder one, other;
  const std::vector<double> begun = fit(6, one.path());
  EXPECT_EQ(fit(6, other.path()), begun) << "a training that begins anew";
  const std::vector<double> restored = fit(12, one.path());
  EXPECT_EQ(restored.size(), begun.size());
  EXPECT_NE(restored, begun);
}

// A program begins to train on parameter servers that an earlier one has used.
TEST_F(ParameterServerFitTest, OnlyTheStepsOfAnEarlierProgramAreLost) {
  const cohort::testing::TempFolder folder;
  const auto backup = keras::BackupAndRestore({.backup_dir = folder.path()});
  const keras::FitOptions plain = {.verbose = 0, .steps_per_epoch = 5};
  keras::FitOptions with_backup = plain;
  with_backup.callbacks = {backup};
  Open(1, 1);
  const auto open = [&] {
    return distribute::ParameterServerStrategy(*cluster_->resolver(), nullptr, {.server = Server()});
  };
  {
    const auto strategy = open();
    keras::Sequential model = Line(strategy);
    model.Fit(TrainingData(), plain);
  }
  const auto said = [&](const keras::FitOptions& first) {
    const auto strategy = open();
    keras::Sequential model = Line(strategy);
    ::testing::internal::CaptureStderr();
    model.Fit(TrainingData(), first);
    model.Fit(TrainingData(), with_backup);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said(plain), Not(HasSubstr("are lost")));
  EXPECT_THAT(said(with_backup), HasSubstr("10 steps are lost"));
}

// The slots of the optimizer are restored, too, with other parts and another number of parameter servers. All batches
// are equal here, so that the place in the data does not matter.
TEST_F(ParameterServerFitTest, ARestoredTrainingEndsAsOneThatWasNotInterrupted) {
  const Tensor x = Tensor::FromValues(Floats{1, 1.5, 2, 2.5, 3, 3.5}, Shape{3, 2});
  const Tensor y = Tensor::FromValues(Floats{0.3f, 0.5f, 0.7f}, Shape{3, 1});
  const data::Dataset dataset = data::Dataset::FromTensorSlices({x, y}).Batch(3).Repeat();
  for (const char* optimizer : {"adam", "rmsprop", "nadam"}) {
    const cohort::testing::TempFolder folder;
    const auto train = [&](const distribute::StrategyPtr& strategy, int epochs, const std::string& backups) {
      keras::Sequential model = Line(strategy, optimizer);
      keras::FitOptions options = {.epochs = epochs, .verbose = 0, .steps_per_epoch = 5};
      if (!backups.empty()) {
        options.callbacks = {keras::BackupAndRestore({.backup_dir = backups, .delete_checkpoint = false})};
      }
      model.Fit(dataset, options);
      Floats all;
      for (const Tensor& weight : model.GetWeights()) {
        const Floats values = weight.ToVector<float>();
        all.insert(all.end(), values.begin(), values.end());
      }
      return all;
    };
    const Floats expected = train(Open(1, 2, distribute::FixedShardsPartitioner(2)), 4, "");
    train(Open(1, 2, distribute::FixedShardsPartitioner(2)), 2, folder.path());
    EXPECT_EQ(train(Open(1, 3, distribute::FixedShardsPartitioner(5)), 3, folder.path()).size(), expected.size());
    EXPECT_EQ(train(Open(1, 1), 4, folder.path()), expected) << optimizer;
  }
}

TEST_F(ParameterServerFitTest, WeightsOfExamplesAndClassesReachTheWorkers) {
  const Tensor x = Tensor::FromValues(Floats{1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5}, Shape{4, 2});
  const Tensor y = Tensor::FromValues(std::vector<int32_t>{0, 1, 1, 0}, Shape{4, 1});
  const Tensor weight = Tensor::Vector<float>({1, 2, 3, 4});
  const auto train = [&](const distribute::StrategyPtr& strategy) {
    keras::Sequential model({keras::Dense(2, {.activation = "softmax"})}, {.seed = 3, .strategy = strategy});
    model.Compile({.optimizer = "sgd",
                   .loss = "sparse_categorical_crossentropy",
                   .metrics = {"accuracy"},
                   .weighted_metrics = {"sparse_categorical_accuracy"}});
    keras::FitOptions options = {
        .batch_size = 2, .epochs = 2, .verbose = 0, .shuffle = false, .steps_per_epoch = 2, .signal_check = false};
    Floats all;
    const auto add = [&](const keras::History& history) {
      for (const char* name : {"loss", "accuracy", "sparse_categorical_accuracy"}) {
        for (const double value : history[name]) all.push_back(static_cast<float>(value));
      }
    };
    add(model.Fit({x, y}, options));
    add(model.Fit({x, y, weight}, options));
    options.class_weight = {{0, 0.5}, {1, 2.0}};
    add(model.Fit({x, y, weight}, options));
    add(model.Fit({x, y}, options));
    return all;
  };
  EXPECT_EQ(train(Open(1, 1)), train(nullptr));
}

// One worker makes the steps of one device, so it counts what one device counts.
TEST_F(ParameterServerFitTest, CountsOfPositivesReachTheChief) {
  const Tensor x = Tensor::FromValues(Floats{1, -1.5, -2, 2.5, 3, -3.5, -4, 4.5}, Shape{4, 2});
  const Tensor y = Tensor::FromValues(Floats{0, 1, 1, 0, 1, 0, 1, 1}, Shape{4, 2});
  const Tensor weight = Tensor::Vector<float>({1, 2, 3, 4});
  const auto train = [&](const distribute::StrategyPtr& strategy) {
    keras::Sequential model({keras::Dense(2, {.activation = "sigmoid"})}, {.seed = 3, .strategy = strategy});
    model.Compile({.optimizer = "sgd",
                   .loss = "squared_hinge",
                   .metrics = {"precision", keras::Recall({.class_id = 1}), "root_mean_squared_error",
                               keras::F1Score({.average = "macro"}), keras::PrecisionAtRecall(0.5)},
                   .weighted_metrics = {keras::Precision({.thresholds = 0.3, .name = "weighted_precision"})}});
    const keras::History history = model.Fit(
        {x, y, weight},
        {.batch_size = 2, .epochs = 2, .verbose = 0, .shuffle = false, .steps_per_epoch = 2, .signal_check = false});
    Floats all;
    for (const char* name : {"loss", "precision", "recall", "root_mean_squared_error", "f1_score",
                             "precision_at_recall", "weighted_precision"}) {
      EXPECT_GT(history[name].back(), 0.0) << name;
      for (const double value : history[name]) all.push_back(static_cast<float>(value));
    }
    return all;
  };
  const Floats expected = train(nullptr);
  EXPECT_EQ(expected.size(), 14u);
  EXPECT_EQ(train(Open(1, 1)), expected);
  EXPECT_EQ(train(Open(1, 2, distribute::FixedShardsPartitioner(2))), expected);
}

// A worker is lost between two epochs; the other one does its work.
// The rows of popular ids are in many places of a batch.
TEST_F(ParameterServerFitTest, ARowThatOccursOftenTravelsOnce) {
  constexpr int64_t kExamples = 512, kIds = 20, kDimensions = 64;
  const auto train = [&](const distribute::StrategyPtr& strategy, int steps) {
    const keras::LayerTensor ids = keras::Input(Shape{kIds}, {.dtype = DType::kInt64});
    const keras::LayerTensor mean = keras::EmbedReduce(1000, kDimensions)(ids);
    const keras::LayerTensor each = keras::Flatten()(keras::Embedding(1000, kDimensions)(ids));
    keras::Model model({ids}, {keras::Dense(1)(keras::Concatenate()({mean, each}))}, {.seed = 3, .strategy = strategy});
    model.Compile({.optimizer = keras::SGD({.learning_rate = 0.1}), .loss = "mse"});
    Tensor x(DType::kInt64, Shape{kExamples, kIds});
    for (int64_t i = 0; i < x.num_elements(); ++i) x.data<int64_t>()[i] = i % 7 * 100;
    const auto data =
        data::Dataset::FromTensorSlices({x, Tensor::FromValues(Floats(kExamples, 1.0f), Shape{kExamples, 1})});
    const keras::History history =
        model.Fit(data.Batch(kExamples).Repeat(), {.verbose = 0, .steps_per_epoch = steps, .signal_check = false});
    return history["loss"].back();
  };
  const distribute::StrategyPtr strategy = Open(1, 1);
  const auto network = [&] {
    StatusClient client(cluster_->cluster_spec(), {.time_limit = std::chrono::seconds(30), .token = Server().token});
    int64_t bytes = 0;
    for (const TaskReport& task : client.Ask().tasks) {
      if (task.job == "worker") bytes += static_cast<int64_t>(task.status.sent_bytes + task.status.received_bytes);
    }
    return bytes;
  };
  constexpr int kSteps = 10;
  const int64_t before = network();
  const double loss = train(strategy, kSteps);
  // Two tables, and rows and gradients: four such transfers in each step if each place had its row.
  const int64_t each_place = kExamples * kIds * kDimensions * static_cast<int64_t>(sizeof(float));
  EXPECT_LT(network() - before, kSteps * each_place) << "with messages, data and heartbeats";
  EXPECT_NEAR(loss, train(nullptr, kSteps), 1e-5);
}

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
