#include "cohort/train/hooks/input_pipeline_hook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/temp_folder.h"
#include "cohort/core/testing/throws.h"
#include "cohort/data/graph_iterator.h"
#include "cohort/ops/variables.h"
#include "cohort/registration.h"
#include "cohort/train/hooks/hooks.h"
#include "cohort/train/monitored_session.h"
#include "tests/cluster/local_cluster.h"

namespace cohort::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LocalCluster;
using Numbers = std::vector<int64_t>;

// A graph that takes numbers 0, 1, 2, ... up to `end` out of an iterator and counts the steps.
struct InputGraph {
  explicit InputGraph(int64_t end = 100, const std::string& step_device = "", const std::string& device = "") {
    RegisterAll();
    {
      const DeviceScope scope(graph, step_device);
      step = ops::GetOrCreateGlobalStep(graph);
    }
    const DeviceScope scope(graph, device);
    next = data::MakeGraphIterator(graph, data::Dataset::Range(end)).GetNext()[0];
    const ControlDependencies after(graph, {next.node});
    count = step.AssignAdd(1);
  }
  // Runs until a hook stops, or the data ends. Returns the numbers that the steps have got.
  Numbers Train(const MonitoredTrainingSessionOptions& options) {
    Numbers got;
    MonitoredSession session = MonitoredTrainingSession(graph, options);
    session.RunUntilStop(
        [&](MonitoredSession& running) { got.push_back(running.Run({}, {next}, {count})[0].scalar<int64_t>()); });
    return got;
  }

  Graph graph;
  ops::Variable step;
  Output next;
  Node* count = nullptr;
};

std::shared_ptr<SessionRunHook> StopAt(int64_t last) {
  return std::make_shared<StopAtStepHook>(StopAtStepHook::Options{.last_step = last});
}

class InputPipelineHookTest : public ::testing::Test {
 protected:
  // Trains up to step `last`.
  Numbers Train(int64_t last, bool with_hook) {
    InputGraph model;
    std::vector<std::shared_ptr<SessionRunHook>> hooks = {StopAt(last)};
    if (with_hook) {
      hooks.push_back(std::make_shared<CheckpointInputPipelineHook>(
          CheckpointInputPipelineHook::Options{.checkpoint_dir = folder_.path()}));
    }
    return model.Train({.checkpoint_dir = folder_.path(),
                        .hooks = hooks,
                        .save_checkpoint_steps = 2,
                        .save_input_positions = with_hook});
  }
  const testing::TempFolder folder_;
};

TEST_F(InputPipelineHookTest, ATrainingThatGoesOnGoesOnInItsInput) {
  EXPECT_THAT(Train(3, true), ElementsAre(0, 1, 2));
  EXPECT_TRUE(FileExists(folder_ / "model.ckpt-3.iterators"));
  EXPECT_THAT(Train(5, true), ElementsAre(3, 4));
  EXPECT_THAT(Train(7, false), ElementsAre(0, 1));  // as in TensorFlow
  // The newest checkpoint has no positions, so those of an older one are taken.
  EXPECT_THAT(Train(8, true), ElementsAre(5));
}

TEST_F(InputPipelineHookTest, MonitoredTrainingSessionAddsTheHookByItself) {
  const auto train = [&](int64_t last) {
    InputGraph model;
    return model.Train({.checkpoint_dir = folder_.path(), .hooks = {StopAt(last)}, .save_checkpoint_steps = 2});
  };
  EXPECT_THAT(train(3), ElementsAre(0, 1, 2));
  EXPECT_THAT(train(5), ElementsAre(3, 4));
}

TEST_F(InputPipelineHookTest, EachTaskSavesItsOwnPositionsByItself) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  const auto train = [&](int task, int64_t last) {
    InputGraph model(100, "/job:ps/task:0", StrCat("/job:worker/task:", task));
    return model.Train({.master = cluster.target("worker", task),
                        .is_chief = task == 0,
                        .checkpoint_dir = folder_.path(),
                        .hooks = {StopAt(last)},
                        .server = &cluster.server("worker", task)});
  };
  EXPECT_THAT(train(0, 2), ElementsAre(0, 1));
  EXPECT_TRUE(FileExists(folder_ / "model.ckpt-2.iterators-worker-0"));
  EXPECT_FALSE(FileExists(folder_ / "model.ckpt-2.iterators-worker-1"));
}

TEST_F(InputPipelineHookTest, TheEndOfTheInputEndsTheTraining) {
  InputGraph model(4);
  EXPECT_THAT(model.Train({.checkpoint_dir = folder_.path()}), ElementsAre(0, 1, 2, 3));
}

TEST_F(InputPipelineHookTest, AWorkerSavesItsOwnPositionsBesideTheChiefsCheckpoint) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}});
  const auto train = [&](int task, int64_t last) {
    const bool is_chief = task == 0;
    const std::string name = StrCat("/job:worker/task:", task);
    InputGraph model(100, "/job:ps/task:0", name);
    return model.Train(
        {.master = cluster.target("worker", task),
         .is_chief = is_chief,
         .checkpoint_dir = folder_.path(),
         .hooks = {StopAt(last),
                   std::make_shared<CheckpointInputPipelineHook>(CheckpointInputPipelineHook::Options{
                       .checkpoint_dir = folder_.path(), .task = name, .is_chief = is_chief, .look_interval = {}})}});
  };
  EXPECT_THAT(train(0, 2), ElementsAre(0, 1));
  EXPECT_TRUE(FileExists(folder_ / "model.ckpt-2.iterators-worker-0"));
  EXPECT_FALSE(FileExists(folder_ / "model.ckpt-2.iterators-worker-1"));
  EXPECT_THAT(train(1, 4), ElementsAre(0, 1));
  EXPECT_TRUE(FileExists(folder_ / "model.ckpt-2.iterators-worker-1"));
  EXPECT_THAT(train(0, 6), ElementsAre(2, 3));
}

TEST_F(InputPipelineHookTest, WrongOptionsAreRefused) {
  using Hook = CheckpointInputPipelineHook;
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { Hook({}); }), HasSubstr("folder"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>(
                  [] { Hook({.checkpoint_dir = "x", .look_interval = std::chrono::milliseconds(-1)}); }),
              HasSubstr("-1 ms"));
}

}  // namespace
}  // namespace cohort::train
