// The callbacks against a host that only notes what they do to it.
#include "cohort/keras/callbacks/callbacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <map>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/callbacks/path_template.h"
#include "cohort/summary/event_reader.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FakeHost final : public CallbackHost {
 public:
  void StopTraining() override { stopped = true; }
  bool stop_training() const override { return stopped; }
  double GetLearningRate() override { return rate; }
  void SetLearningRate(double value) override { rate = value; }
  bool has_learning_rate_schedule() const override { return false; }
  int64_t Iterations() override { return iterations; }
  std::vector<Tensor> GetWeights() override { return {Tensor::Scalar(weight)}; }
  void SetWeights(const std::vector<Tensor>& weights) override { weight = weights.at(0).scalar<float>(); }
  std::vector<std::string> WeightNames() const override { return {"dense/kernel"}; }
  MetricDirection DirectionOf(const std::string& name) const override {
    if (name == "loss") return MetricDirection::kDown;
    return name == "accuracy" ? MetricDirection::kUp : MetricDirection::kNone;
  }
  void Save(const std::string& path) override { saved.push_back(path); }
  void SaveWeights(const std::string& path) override { saved_weights.push_back(path); }
  void CheckCanBeSaved() override {
    if (cannot_be_saved) throw UnimplementedError("a layer without Config");
  }
  std::string SerializedGraph() override { return ""; }

  bool stopped = false;
  bool cannot_be_saved = false;
  double rate = 1.0;
  int64_t iterations = 0;
  float weight = 0;
  std::vector<std::string> saved, saved_weights;
};

class CallbacksTest : public ::testing::Test {
 protected:
  // Epochs of one batch each with these logs, until the callback stops them. Returns the number of epochs.
  int Fit(const CallbackPtr& callback, const std::vector<Logs>& epochs) {
    callback->Attach(&host, {.epochs = static_cast<int>(epochs.size())});
    callback->OnTrainBegin();
    int done = 0;
    for (Logs logs : epochs) {
      callback->OnEpochBegin(done);
      ++host.iterations;
      callback->OnTrainBatchEnd(0, BatchLogs(1.0, [&] { return logs; }));
      host.weight = static_cast<float>(done);
      callback->OnEpochEnd(done++, logs);
      seen.push_back(logs);
      if (host.stopped) break;
    }
    callback->OnTrainEnd({});
    return done;
  }
  static std::vector<Logs> Of(const std::string& name, const std::vector<double>& values) {
    std::vector<Logs> epochs;
    epochs.reserve(values.size());
    for (const double value : values) epochs.push_back({{name, value}});
    return epochs;
  }
  std::vector<double> RatesSeen() const {
    std::vector<double> rates;
    for (const Logs& logs : seen) rates.push_back(FindLog(logs, "learning_rate").value_or(-1));
    return rates;
  }

  // The scalars and histograms of one of TensorBoard's runs: step and value, by tag.
  std::map<std::string, std::vector<std::pair<int64_t, float>>> Written(const char* run) const {
    std::map<std::string, std::vector<std::pair<int64_t, float>>> written;
    for (const auto& entry : std::filesystem::directory_iterator(folder / run)) {
      EventReader reader(entry.path().string());
      Event event;
      while (reader.Read(&event) == RecordReader::Outcome::kRecord) {
        for (const SummaryValue& value : event.values) written[value.tag].emplace_back(event.step, value.scalar);
      }
    }
    return written;
  }
  std::map<std::string, std::vector<int64_t>> Steps(const char* run) const {
    std::map<std::string, std::vector<int64_t>> steps;
    for (const auto& [tag, values] : Written(run)) {
      for (const auto& [step, value] : values) steps[tag].push_back(step);
    }
    return steps;
  }

  const testing::TempFolder folder;
  FakeHost host;
  std::vector<Logs> seen;
};

TEST_F(CallbacksTest, EarlyStoppingWaitsForItsPatience) {
  EXPECT_EQ(Fit(EarlyStopping({.patience = 2}), Of("val_loss", {5, 4, 4.5, 3, 3.5, 3.2, 1})), 6);
  EXPECT_TRUE(host.stopped);
}

TEST_F(CallbacksTest, EarlyStoppingRestoresTheBestWeights) {
  ::testing::internal::CaptureStdout();
  const CallbackPtr callback = EarlyStopping(
      {.monitor = "val_accuracy", .min_delta = 0.1, .patience = 2, .verbose = 1, .restore_best_weights = true});
  EXPECT_EQ(Fit(callback, Of("val_accuracy", {0.5, 0.7, 0.75, 0.6, 0.9})), 4);
  EXPECT_EQ(host.weight, 1.0f);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "Epoch 4: early stopping\nRestoring model weights from the end of the best epoch: 2.\n");
}

TEST_F(CallbacksTest, EarlyStoppingNeedsItsBaselineAndItsStart) {
  EXPECT_EQ(Fit(EarlyStopping({.patience = 2, .baseline = 1.0}), Of("val_loss", {5, 4, 4.5, 3, 2})), 3);
  host.stopped = false;
  EXPECT_EQ(Fit(EarlyStopping({.start_from_epoch = 3}), Of("val_loss", {1, 2, 3, 4, 5, 6})), 5);
}

TEST_F(CallbacksTest, AnUnknownDirectionIsAnErrorAndAMissingQuantityAWarning) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Fit(EarlyStopping({.monitor = "val_auc"}), Of("val_auc", {1})); }),
              AllOf(HasSubstr("EarlyStopping"), HasSubstr("'val_auc'"), HasSubstr("kMax")));
  EXPECT_EQ(Fit(EarlyStopping({.monitor = "val_auc", .mode = MonitorMode::kMax}), Of("val_auc", {1, 2, 1, 3})), 3);
  host.stopped = false;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Fit(EarlyStopping(), Of("loss", {1, 2, 3})), 3);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), AllOf(HasSubstr("'val_loss'"), HasSubstr("there are loss")));
}

TEST_F(CallbacksTest, ReduceLROnPlateauCoolsDownAndKeepsItsMinimum) {
  Fit(ReduceLROnPlateau({.factor = 0.5, .patience = 2, .cooldown = 1, .min_lr = 0.2}),
      Of("val_loss", {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_THAT(RatesSeen(), ElementsAre(1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.2, 0.2, 0.2));
  EXPECT_THROW(ReduceLROnPlateau({.factor = 1.0}), InvalidArgumentError);
}

TEST_F(CallbacksTest, LearningRateSchedulerSetsAndLogsTheRate) {
  Fit(LearningRateScheduler([](int epoch, double rate) { return epoch < 2 ? rate : rate / 2; }),
      Of("loss", {1, 1, 1, 1}));
  EXPECT_THAT(RatesSeen(), ElementsAre(1, 1, 0.5, 0.25));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(Fit(LearningRateScheduler([nan](int, double) { return nan; }), Of("loss", {1})), InvalidArgumentError);
}

TEST_F(CallbacksTest, TerminateOnNaN) {
  const CallbackPtr callback = TerminateOnNaN();
  callback->Attach(&host, {});
  const auto batch = [&](int64_t number, double loss) {
    callback->OnTrainBatchEnd(number, BatchLogs(loss, []() -> Logs { throw InternalError("read for nothing"); }));
  };
  batch(0, 1.0);
  EXPECT_FALSE(host.stopped);
  ::testing::internal::CaptureStdout();
  batch(1, std::numeric_limits<double>::infinity());
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "Batch 1: Invalid loss, terminating training\n");
  EXPECT_TRUE(host.stopped);
}

TEST_F(CallbacksTest, ModelCheckpointSavesEveryEpochUnderItsNumbers) {
  Fit(ModelCheckpoint({.filepath = "m-{epoch:02d}-{val_loss:.2f}.keras"}), Of("val_loss", {0.5, 0.256}));
  EXPECT_THAT(host.saved, ElementsAre("m-01-0.50.keras", "m-02-0.26.keras"));
  EXPECT_THAT(host.saved_weights, IsEmpty());
}

TEST_F(CallbacksTest, ModelCheckpointSavesTheBestOnly) {
  ::testing::internal::CaptureStdout();
  Fit(ModelCheckpoint({.filepath = "best.weights.h5", .verbose = 1, .save_best_only = true, .save_weights_only = true}),
      Of("val_loss", {0.5, 0.5, 0.25}));
  EXPECT_EQ(host.saved_weights.size(), 2u);
  EXPECT_THAT(host.saved, IsEmpty());
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "\nEpoch 1: val_loss improved from None to 0.50000, saving model to best.weights.h5\n"
            "\nEpoch 2: val_loss did not improve from 0.50000\n"
            "\nEpoch 3: val_loss improved from 0.50000 to 0.25000, saving model to best.weights.h5\n");
}

// Keras: overwrites only where the value is better than the threshold, and only with save_best_only.
TEST_F(CallbacksTest, ModelCheckpointNeedsToBeBetterThanItsInitialValue) {
  ::testing::internal::CaptureStdout();
  Fit(ModelCheckpoint(
          {.filepath = "{epoch}.keras", .verbose = 1, .save_best_only = true, .initial_value_threshold = 0.4}),
      Of("val_loss", {0.5, 0.4, 0.3, 0.35, 0.2}));
  EXPECT_THAT(host.saved, ElementsAre("3.keras", "5.keras"));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "\nEpoch 1: val_loss did not improve from 0.40000\n"
            "\nEpoch 2: val_loss did not improve from 0.40000\n"
            "\nEpoch 3: val_loss improved from 0.40000 to 0.30000, saving model to 3.keras\n"
            "\nEpoch 4: val_loss did not improve from 0.30000\n"
            "\nEpoch 5: val_loss improved from 0.30000 to 0.20000, saving model to 5.keras\n");
  host.saved.clear();
  Fit(ModelCheckpoint({.filepath = "{epoch}.keras",
                       .monitor = "val_accuracy",
                       .save_best_only = true,
                       .initial_value_threshold = 0.8}),
      Of("val_accuracy", {0.7, 0.8, 0.9, 0.85}));
  EXPECT_THAT(host.saved, ElementsAre("3.keras"));
  host.saved.clear();
  Fit(ModelCheckpoint({.filepath = "{epoch}.keras", .initial_value_threshold = 0.4}), Of("val_loss", {0.5, 0.3}));
  EXPECT_THAT(host.saved, ElementsAre("1.keras", "2.keras"));
}

TEST_F(CallbacksTest, ModelCheckpointCountsBatchesOverEpochs) {
  Fit(ModelCheckpoint({.filepath = "{epoch}-{batch}.keras", .save_every_batches = 2}), Of("loss", {1, 1, 1, 1, 1}));
  EXPECT_THAT(host.saved, ElementsAre("2-1.keras", "4-1.keras"));
}

TEST_F(CallbacksTest, ModelCheckpointChecksItsPath) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { ModelCheckpoint({.filepath = "m.ckpt"}); }),
              AllOf(HasSubstr(".keras"), HasSubstr("m.ckpt")));
  EXPECT_THROW(ModelCheckpoint({.filepath = "m.keras", .save_weights_only = true}), InvalidArgumentError);
  EXPECT_THAT(MessageOf<InvalidArgumentError>(
                  [&] { Fit(ModelCheckpoint({.filepath = "{val_acc}.keras"}), Of("val_loss", {1})); }),
              AllOf(HasSubstr("{val_acc}"), HasSubstr("val_loss"), HasSubstr("epoch")));
}

TEST_F(CallbacksTest, ModelCheckpointMakesItsFolderBeforeTheFirstEpoch) {
  const CallbackPtr callback = ModelCheckpoint({.filepath = folder / "a/b/{epoch}/m.keras"});
  callback->Attach(&host, {});
  callback->OnTrainBegin();
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b"));
  EXPECT_FALSE(FileExists(folder / "a/b/1"));
  Fit(callback, Of("loss", {1}));
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/1"));
  EXPECT_THAT(host.saved, ElementsAre(folder / "a/b/1/m.keras"));
}

TEST_F(CallbacksTest, ModelCheckpointFailsAtTheBeginIfItCannotSave) {
  WriteFileAtomically(folder / "file", "");
  const CallbackPtr callback = ModelCheckpoint({.filepath = folder / "file/m-{epoch}.keras"});
  callback->Attach(&host, {});
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { callback->OnTrainBegin(); }),
              AllOf(HasSubstr(folder / "file:"), HasSubstr("ModelCheckpoint"), HasSubstr("m-{epoch}.keras")));
  host.cannot_be_saved = true;
  const CallbackPtr whole = ModelCheckpoint({.filepath = folder / "m.keras"});
  whole->Attach(&host, {});
  EXPECT_THROW(whole->OnTrainBegin(), UnimplementedError);
  Fit(ModelCheckpoint({.filepath = folder / "m.weights.h5", .save_weights_only = true}), Of("loss", {1}));
  EXPECT_THAT(host.saved_weights, ElementsAre(folder / "m.weights.h5"));
}

TEST_F(CallbacksTest, PathTemplates) {
  const Logs values = {{"epoch", 7}, {"loss", 0.125}};
  EXPECT_EQ(FillIn("a", values), "a");
  EXPECT_EQ(FillIn("{epoch}{epoch:3d}{epoch:03d}", values), "7  7007");
  EXPECT_EQ(FillIn("{loss} {loss:.2f} {loss:.1e}", values), "0.125 0.12 1.2e-01");
  EXPECT_EQ(FillIn("{{epoch}}", values), "{epoch}");
  for (const char* bad : {"{epoch", "{epoch:x}", "{epoch:%n}", "{epoch:.2d}", "{}"}) {
    EXPECT_THROW(FillIn(bad, values), InvalidArgumentError) << bad;
  }
}

TEST_F(CallbacksTest, CsvLoggerWritesWhatPythonsDoes) {
  const std::string path = folder / "log.csv";
  Fit(CSVLogger(path), {{{"loss", 0.5}, {"accuracy", 1}}, {{"loss", 1e-5}}});
  EXPECT_EQ(ReadFile(path), "epoch,accuracy,loss,val_accuracy,val_loss\r\n0,1.0,0.5,NA,NA\r\n1,NA,1e-05,NA,NA\r\n");
  Fit(CSVLogger(path, ";", true), {{{"loss", 2}, {"val_loss", 3}}});
  EXPECT_THAT(ReadFile(path), ::testing::EndsWith("1,NA,1e-05,NA,NA\r\n0;2.0;3.0\r\n"));
  EXPECT_THROW(Fit(CSVLogger(folder / "none/log.csv"), Of("loss", {1})), NotFoundError);
}

TEST_F(CallbacksTest, TensorBoardWritesTwoRuns) {
  const CallbackPtr callback =
      TensorBoard({.log_dir = folder.path(), .histogram_freq = 2, .write_graph = false, .update_every_batches = 3});
  callback->Attach(&host, {});
  callback->OnTrainBegin();
  for (int epoch = 0; epoch < 3; ++epoch) {
    callback->OnEpochBegin(epoch);
    for (int batch = 0; batch < 2; ++batch) {
      ++host.iterations;
      callback->OnTrainBatchEnd(batch, BatchLogs(1, [] { return Logs{{"loss", 4}}; }));
    }
    callback->OnTestBegin();
    callback->OnTestEnd({{"loss", 7}});
    Logs logs = {{"loss", 2.0 - epoch}, {"val_loss", 7}};
    callback->OnEpochEnd(epoch, logs);
  }
  callback->OnTrainEnd({});
  EXPECT_EQ(Steps("train"), (std::map<std::string, std::vector<int64_t>>{{"epoch_loss", {0, 1, 2}},
                                                                         {"epoch_learning_rate", {0, 1, 2}},
                                                                         {"batch_loss", {3, 6}},
                                                                         {"dense/kernel", {0, 2}}}));
  EXPECT_EQ(Steps("validation"), (std::map<std::string, std::vector<int64_t>>{
                                     {"epoch_loss", {0, 1, 2}}, {"evaluation_loss_vs_iterations", {2, 4, 6}}}));
}

// Keras: epoch_steps_per_second counts the optimizer's iterations since the epoch began, batch_steps_per_second is one
// over the time of a batch. What the test measures within and around an epoch bounds both.
TEST_F(CallbacksTest, TensorBoardWritesStepsPerSecond) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  const CallbackPtr callback = TensorBoard(
      {.log_dir = folder.path(), .write_graph = false, .write_steps_per_second = true, .update_every_batches = 2});
  callback->Attach(&host, {});
  callback->OnTrainBegin();
  host.iterations = 10;
  std::vector<double> least, most;  // steps a second
  for (int epoch = 0; epoch < 2; ++epoch) {
    const auto around = Clock::now();
    callback->OnEpochBegin(epoch);
    const auto within = Clock::now();
    for (int batch = 0; batch < 3; ++batch) {
      callback->OnTrainBatchBegin(batch);
      ++host.iterations;
      callback->OnTrainBatchEnd(batch, BatchLogs(1, [] { return Logs{{"loss", 4}}; }));
    }
    most.push_back(3 / seconds_since(within));
    Logs logs = {{"loss", 2}};
    callback->OnEpochEnd(epoch, logs);
    least.push_back(3 / seconds_since(around));
  }
  callback->OnTrainEnd({});
  const auto written = Written("train");
  const auto& epochs = written.at("epoch_steps_per_second");
  ASSERT_EQ(epochs.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(epochs[i].first, static_cast<int64_t>(i));
    EXPECT_GE(epochs[i].second, least[i] * (1 - 1e-6));
    EXPECT_LE(epochs[i].second, most[i] * (1 + 1e-6));
  }
  EXPECT_THAT(Steps("train")["batch_steps_per_second"], ElementsAre(12, 14, 16));
  EXPECT_THAT(Steps("train")["batch_loss"], ElementsAre(12, 14, 16));
  for (const auto& [step, rate] : written.at("batch_steps_per_second")) EXPECT_GE(rate, least[step / 15] / 3);
}

TEST_F(CallbacksTest, TensorBoardWritesNoStepsPerSecondUnasked) {
  Fit(TensorBoard({.log_dir = folder.path(), .write_graph = false, .update_every_batches = 1}), Of("loss", {1}));
  EXPECT_EQ(Steps("train").count("epoch_steps_per_second"), 0u);
  EXPECT_EQ(Steps("train").count("batch_steps_per_second"), 0u);
  EXPECT_EQ(Steps("train").count("batch_loss"), 1u);
}

TEST_F(CallbacksTest, AListCallsAllInOrder) {
  std::vector<std::string> calls;
  LambdaCallbackOptions first;
  first.on_epoch_end = [&](int, Logs& logs) { SetLog(logs, "extra", 1); };
  first.on_train_begin = [&] { calls.emplace_back("first"); };
  LambdaCallbackOptions second;
  second.on_train_begin = [&] { calls.emplace_back("second"); };
  second.on_epoch_end = [&](int, Logs& logs) { calls.push_back(logs.back().first); };
  CallbackList list({LambdaCallback(first), LambdaCallback(second)});
  list.AttachAll(&host, {});
  list.OnTrainBegin();
  Logs logs = {{"loss", 1}};
  list.OnEpochEnd(0, logs);
  EXPECT_THAT(calls, ElementsAre("first", "second", "extra"));
}

}  // namespace
}  // namespace cohort::keras
