// Runs the trainings of guide 001: by hand, by Fit on one device, mirrored, and on two workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/testing/temp_folder.h"
#include "tests/cluster/example_output.h"
#include "tests/cluster/launch_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;

class Guide001Test : public LaunchTest {};

size_t FilesIn(const std::string& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST_F(Guide001Test, TheLoopByHandHasFiveStepsAnEpoch) {
  const TempFolder folder;
  LaunchedProgram program({GUIDE_001_STRATEGIES_PROGRAM, "--training=loop", "--checkpoints=" + folder.path()});
  ASSERT_EQ(program.Wait(), 0) << program.err();
  EXPECT_THAT(program.out(), HasSubstr("epoch 1/3: 5 steps of 20 images, loss "));
  EXPECT_LT(NumberBehind(LastLineOf(program.out(), "epoch 3/3: "), "loss "), 0.3) << program.out();
  EXPECT_TRUE(std::filesystem::exists(folder / "ckpt-3.index"));
}

// 100 images make two batches of 40 and one of 20.
TEST_F(Guide001Test, TheLoopByHandWithTwoReplicasHasAGlobalBatch) {
  LaunchedProgram program({GUIDE_001_STRATEGIES_PROGRAM, "--training=mirrored_loop"});
  ASSERT_EQ(program.Wait(), 0) << program.err();
  EXPECT_THAT(program.out(), HasSubstr("epoch 1/3: 3 steps of 40 images, loss "));
  EXPECT_LT(NumberBehind(LastLineOf(program.out(), "epoch 3/3: "), "loss "),
            NumberBehind(LastLineOf(program.out(), "epoch 1/3: "), "loss "));
}

TEST_F(Guide001Test, OfTwoWorkersWithALoopByHandTheChiefSavesWhatBothHaveTrained) {
  const TempFolder folder;
  LaunchedProgram program(Launch({"--workers=2"}, {GUIDE_001_STRATEGIES_PROGRAM, "--training=multi_worker_loop",
                                                   "--checkpoints=" + folder.path()}));
  ASSERT_EQ(program.Wait(), 0) << program.err();
  EXPECT_THAT(program.out(), HasSubstr("[worker/0] epoch 3/3: 3 steps of 40 images, loss "));
  EXPECT_THAT(program.out(), ::testing::Not(HasSubstr("[worker/1] epoch")));
  const BundleReader saved(LatestCheckpoint(folder.path()));
  EXPECT_EQ(saved.Read("w").shape(), (Shape{16, 2}));
}

TEST_F(Guide001Test, TwoReplicasTrainWithABatchOfTwiceTheSize) {
  for (const auto& [training, line] : {std::pair("fit", "1 replicas, GLOBAL_BATCH_SIZE 20, accuracy 1.000"),
                                       std::pair("mirrored", "2 replicas, GLOBAL_BATCH_SIZE 40, accuracy 1.000")}) {
    LaunchedProgram program({GUIDE_001_STRATEGIES_PROGRAM, std::string("--training=") + training});
    ASSERT_EQ(program.Wait(), 0) << program.err();
    EXPECT_THAT(program.out(), HasSubstr(line));
  }
}

TEST_F(Guide001Test, OfTwoWorkersTheChiefSaves) {
  const TempFolder folder;
  LaunchedProgram program(Launch(
      {"--workers=2"}, {GUIDE_001_STRATEGIES_PROGRAM, "--training=multi_worker", "--checkpoints=" + folder.path()}));
  ASSERT_EQ(program.Wait(), 0) << program.err();
  EXPECT_THAT(program.out(), HasSubstr("[worker/0] 2 replicas, GLOBAL_BATCH_SIZE 40, accuracy 1.000"));
  EXPECT_EQ(FilesIn(folder.path()), 3u);
}

}  // namespace
}  // namespace cohort::testing
