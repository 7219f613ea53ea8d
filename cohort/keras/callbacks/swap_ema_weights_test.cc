// Models whose optimizers keep averages of weights or sum gradients: on strategies, in files, after an interruption,
// and with the callback SwapEMAWeights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "cohort/core/process/stop_signal.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/distribute/strategies.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/files/model_files.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/keras/testing/updates.h"

namespace cohort::keras {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

using Weights = std::vector<std::vector<float>>;

Weights WeightsOf(Model& model) {
  Weights values;
  for (const Tensor& weight : model.GetWeights()) values.push_back(weight.ToVector<float>());
  return values;
}

class AveragedFitTest : public ::testing::Test {
 protected:
  static OptimizerPtr Averaging() {
    return Adam({.learning_rate = 0.05, .use_ema = true, .ema_momentum = 0.7, .gradient_accumulation_steps = 2});
  }
  static std::unique_ptr<Sequential> Made(const OptimizerPtr& optimizer) {
    auto model = std::make_unique<Sequential>(
        std::vector<SequentialItem>{Input(Shape{2}), Dense(4, {.activation = "tanh"}), Dense(1)},
        ModelOptions{.seed = 5});
    model->Compile({.optimizer = optimizer, .loss = "mse"});
    return model;
  }
  // 4 batches an epoch.
  static ModelData Data() { return {Counting(Shape{10, 2}, -1, 0.1f), Counting(Shape{10, 1}, 1, -0.2f)}; }
  static History Fit(Model& model, std::vector<CallbackPtr> callbacks = {}, int epochs = 3, bool validates = false) {
    FitOptions options = {
        .batch_size = 3, .epochs = epochs, .verbose = 0, .callbacks = std::move(callbacks), .shuffle = false};
    if (validates) options.validation_data = Data();
    return model.Fit(Data(), options);
  }

  const testing::TempFolder folder;
};

TEST_F(AveragedFitTest, ReplicasMakeTheUpdatesOfOneDevice) {
  const std::vector<std::string> central = {"/device:CPU:0", "/device:CPU:1"};
  TrainingCase one;
  one.regularized = true;
  one.normalized = true;
  for (const OptimizerPtr& optimizer : {Adam({.learning_rate = 0.05,
                                       .epsilon = 1e-3,
                                       .use_ema = true,
                                       .ema_momentum = 0.8,
                                       .ema_overwrite_frequency = 2}),
                                        SGD({.learning_rate = 0.1,
                                        .momentum = 0.9,
                                        .global_clipnorm = 0.5,
                                        .loss_scale_factor = 4.0,
                                        .gradient_accumulation_steps = 2}),
                                        AdamW({.learning_rate = 0.05,
                                        .epsilon = 1e-3,
                                        .use_ema = true,
                                        .ema_momentum = 0.8,
                                        .gradient_accumulation_steps = 3})}) {
    one.optimizer = optimizer;
    const Trained expected = Train(one, nullptr);
    for (const distribute::StrategyPtr& strategy : {distribute::MirroredOnCpus(2), distribute::MirroredOnCpus(3),
                                                    distribute::CentralStorage({.compute_devices = central})}) {
      const Trained got = Train(one, strategy);
      EXPECT_LT(DistanceOfUpdates(expected, got), 3e-5) << optimizer->name() << " on " << strategy->name();
      EXPECT_NEAR(got.loss, expected.loss, 1e-5) << optimizer->name() << " on " << strategy->name();
    }
  }
}

// SGD without momentum by sums of two equal halves of a batch is SGD by whole batches.
TEST_F(AveragedFitTest, HalvesOfABatchMakeItsUpdate) {
  const Tensor x = Counting(Shape{8, 2}, -1, 0.1f), y = Counting(Shape{8, 1}, 1, -0.2f);
  const auto fit = [&](std::optional<int64_t> steps, int64_t batch_size) {
    const auto model = Made(SGD({.learning_rate = 0.1, .gradient_accumulation_steps = steps}));
    model->Fit(x, y, {.batch_size = batch_size, .epochs = 3, .verbose = 0, .shuffle = false});
    return WeightsOf(*model);
  };
  const Weights whole = fit(std::nullopt, 4), halves = fit(2, 2);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_THAT(halves[i], Pointwise(FloatNear(1e-5f), whole[i]));
}

// An embedding's gradient is sparse.
TEST_F(AveragedFitTest, GradientsOfEmbeddingsAreSummed) {
  const Tensor x = Tensor::FromValues(std::vector<int32_t>{0, 1, 1, 2, 4, 1, 0, 4}, Shape{8, 1});
  const Tensor y = Counting(Shape{8, 1}, 1, -0.2f);
  const auto fit = [&](std::optional<int64_t> steps, int64_t batch_size) {
    Sequential model({Input(Shape{1}, {.dtype = DType::kInt32}), Embedding(5, 3), Flatten(), Dense(1)}, {.seed = 4});
    model.Compile({.optimizer = SGD({.learning_rate = 0.1, .gradient_accumulation_steps = steps}), .loss = "mse"});
    model.Fit(x, y, {.batch_size = batch_size, .epochs = 2, .verbose = 0, .shuffle = false});
    return WeightsOf(model);
  };
  const Weights whole = fit(std::nullopt, 4), halves = fit(2, 2);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_THAT(halves[i], Pointwise(FloatNear(1e-5f), whole[i]));
}

TEST_F(AveragedFitTest, AnInterruptedTrainingGoesOnBitForBit) {
  struct Interruption {};
  const auto whole = Made(Averaging());
  Fit(*whole);
  for (const int stop_after : {1, 3, 4, 7}) {
    const auto backup = [&] { return BackupAndRestore({.backup_dir = folder / "backup", .save_every_batches = 1}); };
    int batches = 0;
    const auto interrupt = LambdaCallback({.on_train_batch_end = [&](int64_t, const BatchLogs&) {
      if (++batches == stop_after) throw Interruption();
    }});
    EXPECT_THROW(Fit(*Made(Averaging()), {backup(), interrupt}), Interruption);
    const auto resumed = Made(Averaging());
    Fit(*resumed, {backup()});
    EXPECT_EQ(WeightsOf(*resumed), WeightsOf(*whole)) << stop_after;
  }
}

// A file has the averages and the sums of gradients: 3 batches are one and a half updates.
TEST_F(AveragedFitTest, AFileGoesOnWhereItWasSaved) {
  const std::string path = folder / "model.keras";
  const auto made = Made(Averaging());
  const Tensor x = Counting(Shape{3, 2}, -1, 0.1f), y = Counting(Shape{3, 1}, 1, -0.2f);
  for (int step = 0; step < 3; ++step) made->TrainOnBatch({x, y});
  SaveModel(*made, path);
  Model loaded = LoadModel(path);
  EXPECT_EQ(WeightsOf(loaded), WeightsOf(*made));
  for (int step = 0; step < 4; ++step) {
    made->TrainOnBatch({x, y});
    loaded.TrainOnBatch({x, y});
    EXPECT_EQ(WeightsOf(loaded), WeightsOf(*made)) << step;
  }
  Fit(*made);
  Fit(loaded);
  EXPECT_EQ(WeightsOf(loaded), WeightsOf(*made));
}

TEST_F(AveragedFitTest, FitEndsWithTheAverages) {
  // With an average that follows at once, nothing changes; with one that does not move, the first update remains.
  const auto plain = Made(SGD({.learning_rate = 0.1}));
  const auto at_once = Made(SGD({.learning_rate = 0.1, .use_ema = true, .ema_momentum = 0.0}));
  const auto fixed = Made(SGD({.learning_rate = 0.1, .use_ema = true, .ema_momentum = 1.0}));
  const auto first = Made(SGD({.learning_rate = 0.1}));
  Fit(*plain);
  Fit(*at_once);
  Fit(*fixed);
  first->Fit(Data(), {.batch_size = 3, .epochs = 1, .verbose = 0, .shuffle = false, .steps_per_epoch = 1});
  EXPECT_EQ(WeightsOf(*at_once), WeightsOf(*plain));
  EXPECT_EQ(WeightsOf(*fixed), WeightsOf(*first));
}

TEST_F(AveragedFitTest, TheCallbackEvaluatesAndSavesTheAverages) {
  const auto optimizer = [] { return SGD({.learning_rate = 0.1, .use_ema = true, .ema_momentum = 0.6}); };
  const auto averages = Made(optimizer());
  Fit(*averages);
  const double expected = FindLog(averages->Evaluate(Data(), {.batch_size = 3, .verbose = 0}), "loss").value();

  const auto validated = Made(optimizer());
  const History swapped = Fit(*validated, {SwapEMAWeights()}, 3, /*validates=*/true);
  EXPECT_NEAR(swapped["val_loss"].back(), expected, 1e-6);
  EXPECT_EQ(WeightsOf(*validated), WeightsOf(*averages)) << "the training is the same";
  EXPECT_NEAR(
      FindLog(validated->Evaluate(Data(), {.batch_size = 3, .verbose = 0, .callbacks = {SwapEMAWeights()}}), "loss")
          .value(),
      expected, 1e-6);

  const auto saved = Made(optimizer());
  Weights after_epoch;
  Fit(*saved, {SwapEMAWeights(/*swap_on_epoch=*/true),
               LambdaCallback({.on_epoch_end = [&](int, Logs&) { after_epoch = WeightsOf(*saved); }})});
  EXPECT_EQ(after_epoch, WeightsOf(*averages));
  EXPECT_EQ(WeightsOf(*saved), WeightsOf(*averages));
}

TEST_F(AveragedFitTest, ACallbackWithoutAveragesIsRefused) {
  const auto plain = Made(SGD());
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { Fit(*plain, {SwapEMAWeights()}, 1, /*validates=*/true); }),
              HasSubstr("use_ema=true"));
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { Fit(*plain, {SwapEMAWeights()}); }), HasSubstr("use_ema=true"));
  const auto averaging = Made(Averaging());
  EXPECT_THAT(MessageOf<FailedPreconditionError>(
                  [&] { averaging->Evaluate(Data(), {.verbose = 0, .callbacks = {SwapEMAWeights()}}); }),
              HasSubstr("has not been applied yet"));
}

// An epoch ends with the averages in the model, and so does its backup.
TEST_F(AveragedFitTest, TheCallbackGoesOnAfterAnInterruption) {
  struct Interruption {};
  const auto optimizer = [] { return SGD({.learning_rate = 0.1, .use_ema = true, .ema_momentum = 0.6}); };
  const auto backup = [&] { return BackupAndRestore({.backup_dir = folder / "backup"}); };
  const auto whole = Made(optimizer());
  Fit(*whole, {SwapEMAWeights(true)});
  const auto interrupt = LambdaCallback({.on_epoch_begin = [](int epoch) {
    if (epoch == 2) throw Interruption();
  }});
  EXPECT_THROW(Fit(*Made(optimizer()), {SwapEMAWeights(true), backup(), interrupt}), Interruption);
  const auto resumed = Made(optimizer());
  Fit(*resumed, {SwapEMAWeights(true), backup()});
  EXPECT_EQ(WeightsOf(*resumed), WeightsOf(*whole));
}

// Fit ends with the averages, whichever callback stops it.
TEST_F(AveragedFitTest, AFitThatIsStoppedEndsWithTheAverages) {
  const auto expected = Made(Averaging());
  Fit(*expected, {}, /*epochs=*/2);
  const auto stop = [] { return EarlyStopping({.monitor = "loss", .min_delta = 100, .patience = 1}); };
  for (const bool swap_on_epoch : {false, true}) {
    const auto before = Made(Averaging()), behind = Made(Averaging());
    EXPECT_EQ(Fit(*before, {SwapEMAWeights(swap_on_epoch), stop()}).epochs().size(), 2u);
    EXPECT_EQ(WeightsOf(*before), WeightsOf(*expected)) << swap_on_epoch;
    Fit(*behind, {stop(), SwapEMAWeights(swap_on_epoch)});
    EXPECT_EQ(WeightsOf(*behind), WeightsOf(*expected)) << swap_on_epoch;
  }
}

// The error comes when the averages are in the model. Then the training goes on with the weights.
TEST_F(AveragedFitTest, AnErrorDoesNotLeaveTheAveragesInTheTraining) {
  struct Interruption {};
  const auto throws = LambdaCallback({.on_epoch_end = [](int, Logs&) { throw Interruption(); }});
  for (const bool on_batch : {false, true}) {
    const auto expected = Made(Averaging()), swapped = Made(Averaging());
    EXPECT_THROW(Fit(*expected, {throws}), Interruption);
    EXPECT_THROW(Fit(*swapped, {SwapEMAWeights(true), throws}), Interruption);
    EXPECT_NE(WeightsOf(*swapped), WeightsOf(*expected));
    for (Model* model : {expected.get(), swapped.get()}) {
      if (on_batch) model->TrainOnBatch(Data());
      if (!on_batch) Fit(*model);
    }
    EXPECT_EQ(WeightsOf(*swapped), WeightsOf(*expected)) << on_batch;
  }
}

// The averages of a loaded model are those of its file.
TEST_F(AveragedFitTest, ALoadedModelIsEvaluatedWithItsAverages) {
  const std::string path = folder / "averaged.keras";
  const auto made = Made(Averaging());
  for (int step = 0; step < 5; ++step) made->TrainOnBatch(Data());
  made->Save(path);
  Model loaded = LoadModel(path);
  const auto loss = [&](Model& model, std::vector<CallbackPtr> callbacks) {
    return FindLog(model.Evaluate(Data(), {.batch_size = 3, .verbose = 0, .callbacks = std::move(callbacks)}), "loss");
  };
  EXPECT_EQ(loss(loaded, {SwapEMAWeights()}), loss(*made, {SwapEMAWeights()}));
  EXPECT_EQ(loss(loaded, {}), loss(*made, {}));
  EXPECT_NE(loss(loaded, {SwapEMAWeights()}), loss(loaded, {}));
  Fit(*made);
  Fit(loaded);
  EXPECT_EQ(WeightsOf(loaded), WeightsOf(*made));
}

// The signal comes when all epochs are done, so that nothing is interrupted. It is sent in a process of its own,
// because a process that has got it trains no more.
TEST_F(AveragedFitTest, ASignalAfterTheLastEpochChangesNothing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto train = [] {
    const auto expected = Made(Averaging()), signalled = Made(Averaging());
    Fit(*expected);
    const History history = Fit(*signalled, {LambdaCallback({.on_epoch_end = [](int epoch, Logs&) {
      if (epoch < 2) return;
      std::raise(SIGTERM);
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }})});
    if (!StopSignal::Received() || history.interrupted()) std::_Exit(2);
    std::_Exit(WeightsOf(*signalled) == WeightsOf(*expected) ? 0 : 1);
  };
  EXPECT_EXIT(train(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cohort::keras
