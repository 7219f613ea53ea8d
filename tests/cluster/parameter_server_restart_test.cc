// A program that trains a Keras model on a ParameterServerStrategy ends in the middle, and another one goes on, with
// the parameter servers of the first one. Real servers in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/distribute/testing/parameter_servers.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/training/model_engine.h"
#include "cohort/keras/training/model_state.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Floats = std::vector<float>;

// All batches are equal, so the place in the data does not matter.
data::Dataset EqualBatches() {
  const Tensor x = Tensor::FromValues(Floats{1, 1.5, 2, 2.5, 3, 3.5}, Shape{3, 2});
  const Tensor y = Tensor::FromValues(Floats{0.3f, 0.5f, 0.7f}, Shape{3, 1});
  return data::Dataset::FromTensorSlices({x, y}).Batch(3).Repeat();
}

class ParameterServerRestartTest : public distribute::ParameterServers {
 protected:
  // A program of its own, on the cluster that is open.
  struct Program {
    explicit Program(const distribute::LocalCluster& cluster)
        : strategy(distribute::ParameterServerStrategy(*cluster.resolver(), distribute::FixedShardsPartitioner(2),
                                                       {.server = Server()})),
          model({keras::Dense(8, {.activation = "tanh"}), keras::Dense(1)}, {.seed = 3, .strategy = strategy}) {
      model.Compile({.optimizer = keras::Adam({.learning_rate = 0.05}), .loss = "mse", .metrics = {"mae"}});
    }
    distribute::StrategyPtr strategy;
    keras::Sequential model;
    keras::History history;
  };

  // Fits, and returns what is logged. `fails_in`: the epoch at whose end the program fails, before its backup.
  std::string Fit(Program& program, int epochs, int64_t steps, const std::string& backups, int fails_in = -1) {
    keras::FitOptions options = {.epochs = epochs, .verbose = 0, .steps_per_epoch = steps};
    options.callbacks = {keras::LambdaCallback({.on_epoch_end =
                                                    [fails_in](int epoch, const keras::Logs&) {
                                                      if (epoch == fails_in) throw CancelledError("as if killed");
                                                    }}),
                         keras::BackupAndRestore({.backup_dir = backups, .delete_checkpoint = false})};
    ::testing::internal::CaptureStderr();
    try {
      program.history = program.model.Fit(EqualBatches(), options);
    } catch (const CancelledError&) {
    }
    return ::testing::internal::GetCapturedStderr();
  }
  static Floats Weights(Program& program) {
    Floats all;
    for (const Tensor& weight : program.model.GetWeights()) {
      const Floats values = weight.ToVector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  // The weights of a training on another cluster that was not interrupted.
  Floats WeightsAfter(int64_t steps) {
    const distribute::LocalCluster other({.workers = 1, .ps = 2, .server = Server()});
    Program program(other);
    Fit(program, 1, steps, folder_ / "other");
    return Weights(program);
  }
  static void SetWeights(Program& program, float value) {
    std::vector<Tensor> weights = program.model.GetWeights();
    for (Tensor& weight : weights) std::fill_n(weight.data<float>(), weight.num_elements(), value);
    program.model.SetWeights(weights);
  }
  const testing::TempFolder folder_;
};

// The backup is of step 3. The parameter servers, with the slots of Adam, are at step 6, so two steps of the second
// epoch are left.
TEST_F(ParameterServerRestartTest, HealthyParameterServersKeepTheirSteps) {
  Open(1, 2);
  {
    Program first(*cluster_);
    Fit(first, 4, 3, folder_.path(), /*fails_in=*/1);
    EXPECT_EQ(first.model.Iterations(), 6);
  }
  Program second(*cluster_);
  EXPECT_THAT(Fit(second, 2, 5, folder_.path()),
              AllOf(HasSubstr("no steps are lost: the parameter servers hold this training, which goes on from step 6, "
                              "3 steps after '"),
                    HasSubstr("loss and metrics of epoch 2 leave out these 3 steps"), Not(HasSubstr("training goes"))));
  EXPECT_EQ(second.model.Iterations(), 8);
  EXPECT_EQ(second.history["loss"].size(), 1u);
  EXPECT_EQ(Weights(second), WeightsAfter(8));
}

// The values themselves are kept: no step is left, and the weights are those that the first program has left.
TEST_F(ParameterServerRestartTest, AnEpochWhoseStepsAreAllMadeEndsWithoutALoss) {
  Open(1, 2);
  Floats left;
  {
    Program first(*cluster_);
    Fit(first, 4, 3, folder_.path(), /*fails_in=*/1);
    SetWeights(first, 0.25f);
    left = Weights(first);
  }
  {
    Program second(*cluster_);
    EXPECT_THAT(Fit(second, 2, 3, folder_.path()), HasSubstr("goes on from step 6, 3 steps after '"));
    EXPECT_EQ(Weights(second), left);
    ASSERT_EQ(second.history["loss"].size(), 1u);
    EXPECT_TRUE(std::isnan(second.history["loss"][0]));
  }
  // The backup at the end of that epoch is of this state, and nothing has to be taken from the parameter servers.
  Program third(*cluster_);
  EXPECT_THAT(Fit(third, 3, 3, folder_.path()), HasSubstr("training goes on from step 6 of '"));
  EXPECT_EQ(third.model.Iterations(), 9);
}

TEST_F(ParameterServerRestartTest, AParameterServerThatWasStartedAgainMakesAllGoBackToTheBackup) {
  Open(1, 2);
  {
    Program first(*cluster_);
    Fit(first, 4, 3, folder_.path(), /*fails_in=*/1);
    SetWeights(first, 0.25f);
  }
  cluster_->Restart("ps", 1);
  Program second(*cluster_);
  EXPECT_THAT(Fit(second, 2, 3, folder_.path()),
              AllOf(HasSubstr("3 steps are lost: an earlier program has made 6 on these parameter servers; training "
                              "goes on from step 3 of '"),
                    HasSubstr("has lost its value, because its parameter server was started again")));
  EXPECT_EQ(second.model.Iterations(), 6);
  EXPECT_EQ(Weights(second), WeightsAfter(6));
}

TEST_F(ParameterServerRestartTest, StepsOfAnotherTrainingAreNotUsed) {
  Open(1, 1);
  {
    Program first(*cluster_);
    Fit(first, 1, 3, folder_.path());
  }
  {
    Program other(*cluster_);
    Fit(other, 4, 3, folder_ / "other", /*fails_in=*/1);
  }
  {
    Program second(*cluster_);
    EXPECT_THAT(Fit(second, 2, 3, folder_.path()),
                AllOf(HasSubstr("3 steps are lost"), HasSubstr("the parameter servers hold another training")));
    EXPECT_EQ(second.model.Iterations(), 6);
  }
  // What a program does after a training that has ended is not this training any more.
  {
    Program more(*cluster_);
    Fit(more, 3, 3, folder_.path());
    more.model.Fit(EqualBatches(), {.verbose = 0, .steps_per_epoch = 2});
  }
  Program last(*cluster_);
  EXPECT_THAT(Fit(last, 4, 3, folder_.path()),
              AllOf(HasSubstr("2 steps are lost"), HasSubstr("the parameter servers hold no training")));
}

// The shuffles of each call have orders of their own, which are fed.
TEST_F(ParameterServerRestartTest, FurtherCallsOfFitAddNoNodes) {
  Open(2, 1);
  Program program(*cluster_);
  Tensor x(DType::kFloat32, Shape{32, 2}), y(DType::kFloat32, Shape{32, 1});
  for (int64_t i = 0; i < 64; ++i) x.data<float>()[i] = static_cast<float>(i % 7) / 7.0f;
  for (int64_t i = 0; i < 32; ++i) y.data<float>()[i] = static_cast<float>(i % 5) / 5.0f;
  const data::Dataset shuffled = data::Dataset::FromTensorSlices({x, y}).Shuffle(32).Batch(4);
  const auto fit = [&] {
    program.model.Fit(
        shuffled,
        {.epochs = 2, .verbose = 0, .validation_data = shuffled, .steps_per_epoch = 5, .validation_steps = 3});
    program.model.Fit({x, y}, {.batch_size = 8, .verbose = 0, .steps_per_epoch = 3});
    program.model.Evaluate(shuffled, {.verbose = 0, .steps = 3});
    return program.model.state().engine().graph().num_nodes();
  };
  fit();
  const int nodes = fit();
  EXPECT_EQ(fit(), nodes);
  EXPECT_EQ(fit(), nodes);
  EXPECT_EQ(program.model.Iterations(), 4 * 13);
}

}  // namespace
}  // namespace cohort
