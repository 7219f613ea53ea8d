// Training that is taken up again; tests/chaos kills real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "cohort/core/file.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/callbacks/callbacks.h"
#include "cohort/keras/files/weights_file.h"
#include "cohort/keras/layers/normalization_layers.h"
#include "cohort/keras/testing/layer_runs.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Interruption {};

class BackupTest : public ::testing::Test {
 protected:
  std::string file() const { return backup_dir + "/latest.weights.h5"; }

  static std::unique_ptr<Sequential> Made(const char* optimizer = "adam") {
    auto model =
        std::make_unique<Sequential>(std::vector<SequentialItem>{Input(Shape{2}), Dense(4, {.activation = "tanh"}),
                                                                 Dropout(0.4), BatchNormalization(), Dense(1)},
                                     ModelOptions{.seed = 5});
    model->Compile({.optimizer = optimizer, .loss = "mse", .metrics = {"mae"}});
    return model;
  }
  // Stops by an exception after `stop_after` batches, -1: not at all.
  History Fit(Model& model, int64_t save_every, int stop_after = -1, int64_t examples = 10) const {
    FitOptions options = {.batch_size = 3, .epochs = 3, .verbose = 0};
    if (save_every >= 0) {
      options.callbacks.push_back(BackupAndRestore({.backup_dir = backup_dir, .save_every_batches = save_every}));
    }
    int batches = 0;
    options.callbacks.push_back(LambdaCallback({.on_train_batch_end = [&](int64_t, const BatchLogs&) {
      if (++batches == stop_after) throw Interruption();
    }}));
    return model.Fit(Counting(Shape{examples, 2}, -1, 0.1f), Counting(Shape{examples, 1}, 1, -0.2f), options);
  }
  static std::vector<std::vector<float>> Weights(Model& model) {
    std::vector<std::vector<float>> values;
    for (const Tensor& weight : model.GetWeights()) values.push_back(weight.ToVector<float>());
    return values;
  }

  const testing::TempFolder folder;
  const std::string backup_dir = folder / "backup";
};

TEST_F(BackupTest, GoesOnInTheMiddleOfAnEpochWithItsLogs) {
  const auto whole = Made();
  const History expected = Fit(*whole, -1);
  for (const auto& [save_every, stop_after] : {std::pair(1, 2), {1, 4}, {2, 7}, {0, 6}}) {
    EXPECT_THROW(Fit(*Made(), save_every, stop_after), Interruption);
    const auto model = Made();
    const History history = Fit(*model, save_every);
    EXPECT_EQ(Weights(*model), Weights(*whole)) << save_every << ", " << stop_after;
    // Also of the epoch that was interrupted.
    EXPECT_EQ(history["loss"].back(), expected["loss"].back());
    EXPECT_EQ(history["mae"].back(), expected["mae"].back());
    const size_t first = expected["loss"].size() - history["loss"].size();
    EXPECT_EQ(history["loss"].front(), expected["loss"][first]);
    EXPECT_EQ(history["mae"].front(), expected["mae"][first]);
    EXPECT_FALSE(FileExists(file()));
  }
}

// A process that is started again describes its data anew, and draws another seed.
TEST_F(BackupTest, AShuffleWithoutASeedGoesOnInItsOrder) {
  const auto data = [] {
    const Tensor x = Counting(Shape{10, 2}, -1, 0.1f), y = Counting(Shape{10, 1}, 1, -0.2f);
    return data::Dataset::FromTensorSlices({x, y}).Shuffle(10).Batch(3);
  };
  const auto fit = [&](Model& model, const data::Dataset& dataset, int stop_after) {
    int batches = 0;
    model.Fit(dataset, {.epochs = 3,
                        .verbose = 0,
                        .callbacks = {BackupAndRestore({.backup_dir = backup_dir, .save_every_batches = 1}),
                                      LambdaCallback({.on_train_batch_end = [&](int64_t, const BatchLogs&) {
                                        if (++batches == stop_after) throw Interruption();
                                      }})}});
  };
  for (const int stop_after : {2, 4, 7}) {  // 4: between epochs
    const data::Dataset described = data();
    const auto whole = Made(), resumed = Made();
    fit(*whole, described, -1);
    EXPECT_THROW(fit(*Made(), described, stop_after), Interruption);
    fit(*resumed, data(), -1);
    EXPECT_EQ(Weights(*resumed), Weights(*whole)) << stop_after;
  }
}

// They change rates, stop and choose weights by what they remember of earlier epochs.
TEST_F(BackupTest, CallbacksGoOnWithWhatTheyRemember) {
  const std::string best = folder / "best.weights.h5";
  struct Run {
    std::vector<std::vector<float>> weights;
    int last_epoch = -1;
    double rate = 0;
    std::vector<int> saved;  // epochs after which the best weights were saved anew
  };
  const auto run = [&](int stop_after, int64_t save_every, Run& result) {
    const auto model = Made("sgd");
    model->SetLearningRate(0.3);
    std::string before = FileExists(best) ? ReadFile(best) : "";
    int batches = 0;
    FitOptions options = {.batch_size = 3, .epochs = 14, .verbose = 0};
    if (save_every >= 0) {
      options.callbacks.push_back(BackupAndRestore({.backup_dir = backup_dir, .save_every_batches = save_every}));
    }
    options.callbacks.insert(
        options.callbacks.end(),
        {LearningRateScheduler([](int, double rate) { return rate * 0.99; }),
         ReduceLROnPlateau({.monitor = "mae", .factor = 0.5, .patience = 2, .min_delta = 0.02, .cooldown = 1}),
         EarlyStopping({.monitor = "mae", .min_delta = 0.02, .patience = 4, .restore_best_weights = true}),
         ModelCheckpoint({.filepath = best, .monitor = "mae", .save_best_only = true, .save_weights_only = true}),
         LambdaCallback({.on_epoch_end =
                             [&](int epoch, Logs&) {
                               result.last_epoch = epoch;
                               result.rate = model->GetLearningRate();
                               const std::string now = ReadFile(best);
                               if (now != before) result.saved.push_back(epoch);
                               before = now;
                             },
                         .on_train_batch_end =
                             [&](int64_t, const BatchLogs&) {
                               if (++batches == stop_after) throw Interruption();
                             }})});
    model->Fit(Counting(Shape{10, 2}, -1, 0.1f), Counting(Shape{10, 1}, 1, -0.2f), options);
    result.weights = Weights(*model);
  };
  Run whole;
  run(-1, -1, whole);
  ASSERT_LT(whole.last_epoch, 13);  // it stops early
  ASSERT_LT(whole.rate, 0.3 * 0.5);
  ASSERT_FALSE(whole.saved.empty());
  // At the end of an epoch, and within one.
  for (const auto& [save_every, epochs] : {std::pair(0, whole.last_epoch), {0, 2}, {1, whole.last_epoch}, {3, 5}}) {
    RemoveFile(best);
    Run interrupted, rest;
    EXPECT_THROW(run(4 * epochs + 2, save_every, interrupted), Interruption);
    run(-1, save_every, rest);
    EXPECT_EQ(rest.weights, whole.weights) << save_every << ", " << epochs;
    EXPECT_EQ(rest.last_epoch, whole.last_epoch);
    EXPECT_EQ(rest.rate, whole.rate);
    std::vector<int> saved = interrupted.saved;
    saved.insert(saved.end(), rest.saved.begin(), rest.saved.end());
    EXPECT_EQ(saved, whole.saved);
  }
}

// A process that ends between the last backup and the end of Fit does not train on when it is started again.
TEST_F(BackupTest, ATrainingThatWasToldToStopStaysStopped) {
  const auto fit = [&](bool interrupted) {
    const auto model = Made();
    FitOptions options = {.batch_size = 3, .epochs = 9, .verbose = 0};
    class Stop final : public Callback {
     public:
      explicit Stop(bool fails) : fails_(fails) {}
      void OnEpochEnd(int epoch, Logs&) override {
        if (epoch == 2) host().StopTraining();
      }
      void OnTrainEnd(const Logs&) override {
        if (fails_) throw Interruption();
      }

     private:
      const bool fails_;
    };
    options.callbacks = {std::make_shared<Stop>(interrupted), BackupAndRestore({.backup_dir = backup_dir})};
    model->Fit(Counting(Shape{6, 2}), Counting(Shape{6, 1}), options);
    return model->Iterations();
  };
  const int64_t whole = fit(false);
  EXPECT_THROW(fit(true), Interruption);
  EXPECT_EQ(fit(false), whole);
}

TEST_F(BackupTest, AFinishedTrainingIsDoneAtOnce) {
  const auto model = Made();
  FitOptions options = {.batch_size = 3, .epochs = 2, .verbose = 0};
  options.callbacks = {BackupAndRestore({.backup_dir = backup_dir, .delete_checkpoint = false})};
  model->Fit(Counting(Shape{6, 2}), Counting(Shape{6, 1}), options);
  const auto again = Made();
  EXPECT_THAT(again->Fit(Counting(Shape{6, 2}), Counting(Shape{6, 1}), options).names(), IsEmpty());
  EXPECT_EQ(Weights(*again), Weights(*model));
  // It is a file of weights like others.
  const auto weights = Made();
  weights->LoadWeights(file());
  EXPECT_EQ(Weights(*weights), Weights(*model));
}

TEST_F(BackupTest, WhatIsNoBackupOfTheTrainingIsRefused) {
  EXPECT_THROW(Fit(*Made(), 1, 5), Interruption);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Fit(*Made("sgd"), 1); }),
              AllOf(HasSubstr("same optimizer"), HasSubstr(file())));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Fit(*Made(), 1, -1, 11); }), HasSubstr("position of"));
  Sequential other({Input(Shape{2}), Dense(1)});
  other.Compile({.optimizer = "adam", .loss = "mse"});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { Fit(other, 1); }), HasSubstr(file()));
  EXPECT_THROW(BackupAndRestore({}), InvalidArgumentError);
  EXPECT_THROW(BackupAndRestore({.backup_dir = "x", .save_every_batches = -1}), InvalidArgumentError);
}

// Every flipped bit is noticed, and the backup before is used. The weights are still those of an undisturbed training.
TEST_F(BackupTest, ADamagedBackupIsPassedOver) {
  const auto undisturbed = Made();
  Fit(*undisturbed, -1);
  for (const int part : {0, 1, 2, 3}) {  // of the file, in which a bit is flipped; 3 is the checksum
    SCOPED_TRACE(part);
    EXPECT_THROW(Fit(*Made(), 1, 6), Interruption);
    std::string backup = ReadFile(file());
    char& byte = part == 3 ? backup.back() : backup[backup.size() * static_cast<size_t>(part) / 3];
    byte = static_cast<char>(byte ^ 0x04);
    std::ofstream(file(), std::ios::binary) << backup;
    const auto model = Made();
    Fit(*model, 1);
    EXPECT_EQ(Weights(*model), Weights(*undisturbed));
    EXPECT_FALSE(FileExists(backup_dir + "/previous.weights.h5")) << "it is deleted at the end";
  }
}

// There is no backup before that could take the place of a damaged one.
TEST_F(BackupTest, EveryFlippedBitIsNoticed) {
  EXPECT_THROW(Fit(*Made(), 1, 6), Interruption);
  RemoveFile(backup_dir + "/previous.weights.h5");
  const std::string intact = ReadFile(file());
  std::mt19937_64 random(14);
  const auto model = Made();
  for (int i = 0; i < 150; ++i) {
    const uint64_t bit = random() % (8 * intact.size());
    SCOPED_TRACE(bit);
    std::string damaged = intact;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    std::ofstream(file(), std::ios::binary) << damaged;
    EXPECT_THAT(MessageOf<DataLossError>([&] { Fit(*model, 1); }), HasSubstr(file()));
  }
  std::ofstream(file(), std::ios::binary) << intact;
  const auto resumed = Made(), undisturbed = Made();
  Fit(*resumed, 1);
  Fit(*undisturbed, -1);
  EXPECT_EQ(Weights(*resumed), Weights(*undisturbed));
}

TEST_F(BackupTest, ADamagedBackupDoesNotReplaceTheIntactOne) {
  EXPECT_THROW(Fit(*Made(), 1, 6), Interruption);
  const std::string previous = backup_dir + "/previous.weights.h5", intact = ReadFile(previous);
  std::string damaged = ReadFile(file());
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x04);
  std::ofstream(file(), std::ios::binary) << damaged;
  EXPECT_THROW(Fit(*Made(), 1, 2), Interruption);  // after one backup
  EXPECT_EQ(ReadFile(previous), intact);
  EXPECT_NE(ReadFile(file()), damaged);
}

// As after a kill between the two renamings of a backup, and before both.
TEST_F(BackupTest, ABackupThatDidNotGetItsNameIsTheNewest) {
  const auto undisturbed = Made();
  Fit(*undisturbed, -1);
  for (const bool first_renaming_was_done : {true, false}) {
    EXPECT_THROW(Fit(*Made(), 1, 6), Interruption);
    std::filesystem::rename(file(), file() + ".new");
    if (!first_renaming_was_done) std::filesystem::rename(backup_dir + "/previous.weights.h5", file());
    const auto model = Made();
    ::testing::internal::CaptureStderr();
    Fit(*model, 1);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("goes on from step 5 of '" + file() + ".new'"));
    EXPECT_EQ(Weights(*model), Weights(*undisturbed));
    EXPECT_TRUE(std::filesystem::is_empty(backup_dir));
  }
}

// A folder that cannot be removed like a file stands for a kill between the removals.
TEST_F(BackupTest, TheNewestBackupIsRemovedLast) {
  EXPECT_THROW(Fit(*Made(), 1, 6), Interruption);
  const std::string previous = backup_dir + "/previous.weights.h5";
  FitOptions options = {.batch_size = 3, .epochs = 3, .verbose = 0};
  options.callbacks = {BackupAndRestore({.backup_dir = backup_dir, .save_every_batches = 1}),
                       LambdaCallback({.on_train_end = [&](const Logs&) {
                         RemoveFile(previous);
                         CreateDirectories(previous + "/in_the_way");
                       }})};
  EXPECT_THROW(Made()->Fit(Counting(Shape{10, 2}, -1, 0.1f), Counting(Shape{10, 1}, 1, -0.2f), options), Error);
  EXPECT_TRUE(FileExists(file()));
}

// A folder that is away for some batches stands for a disk without space.
TEST_F(BackupTest, TheTrainingGoesOnAfterBackupsThatFail) {
  const auto undisturbed = Made();
  Fit(*undisturbed, -1);
  const std::string away = backup_dir + "-away";
  const auto fit = [&](int end_of_the_fault) {
    int batches = 0;
    FitOptions options = {.batch_size = 3, .epochs = 3, .verbose = 0};
    options.callbacks = {BackupAndRestore({.backup_dir = backup_dir, .save_every_batches = 1, .max_save_failures = 3}),
                         LambdaCallback({.on_train_batch_end = [&](int64_t, const BatchLogs&) {
                           if (++batches == 2) std::filesystem::rename(backup_dir, away);
                           if (batches == end_of_the_fault) std::filesystem::rename(away, backup_dir);
                           // Failures of one second count once.
                           if (!FileExists(backup_dir)) std::this_thread::sleep_for(std::chrono::seconds(1));
                         }})};
    const auto model = Made();
    model->Fit(Counting(Shape{10, 2}, -1, 0.1f), Counting(Shape{10, 1}, 1, -0.2f), options);
    return Weights(*model);
  };
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(fit(4), Weights(*undisturbed));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("a checkpoint could not be written (2 of at most 3 in a row)"));
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(fit(-1), Error);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("no checkpoint could be written 3 times in a row"));
  EXPECT_TRUE(FileExists(away + "/latest.weights.h5")) << "the last good one stays";
}

TEST_F(BackupTest, WithoutAnIntactBackupTheFilesAreNamed) {
  EXPECT_THROW(Fit(*Made(), 1, 6), Interruption);
  const std::string previous = backup_dir + "/previous.weights.h5";
  std::filesystem::resize_file(file(), std::filesystem::file_size(file()) / 2);
  Made()->SaveWeights(previous);
  EXPECT_THAT(MessageOf<DataLossError>([&] { Fit(*Made(), 1); }),
              AllOf(HasSubstr(file()), HasSubstr(previous + "' (it has no checksum")));
  EXPECT_THROW(Fit(*Made(), 1, 6), DataLossError);
  std::filesystem::remove(previous);
  std::filesystem::remove(file());
  EXPECT_THROW(Fit(*Made(), 1, 6), Interruption);
  for (const std::string& path : {file(), previous}) {
    std::string backup = ReadFile(path);
    backup.back() = static_cast<char>(backup.back() ^ 0x04);
    std::ofstream(path, std::ios::binary) << backup;
  }
  EXPECT_THAT(MessageOf<DataLossError>([&] { Fit(*Made(), 1); }), HasSubstr(file() + "' (its checksum is wrong"));
}

// Numbers of dropout follow from the step, not from what the session has drawn before.
TEST_F(BackupTest, DropoutDrawsAnewInEachStep) {
  const Tensor ones = Tensor::FromValues(std::vector<float>(400, 1.0f), Shape{1, 400});
  const auto losses = [&](int64_t seed) {
    Sequential one({Input(Shape{400}), Dropout(0.5, {.seed = seed}),
                    Dense(1, {.use_bias = false, .kernel_initializer = "glorot_uniform"})},
                   {.seed = 9});
    one.Compile({.optimizer = SGD({.learning_rate = 0.0}), .loss = "mse"});
    std::vector<double> all;
    for (int step = 0; step < 3; ++step) {
      one.ResetMetrics();
      all.push_back(one.TrainOnBatch({ones, Tensor::FromValues(std::vector<float>{0}, Shape{1, 1})})[0].second);
    }
    return all;
  };
  const std::vector<double> first = losses(0), again = losses(0), other = losses(1);
  EXPECT_EQ(first, again);
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(first[1], first[2]);
  EXPECT_NE(first[0], other[0]);
}

}  // namespace
}  // namespace cohort::keras
