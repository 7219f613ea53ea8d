// Runs guide 002's Estimator program as a cluster of processes: chief, worker, parameter server and evaluator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/testing/temp_folder.h"
#include "tests/cluster/example_output.h"
#include "tests/cluster/launch_fixture.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;

class EstimatorClusterTest : public LaunchTest {};

TEST_F(EstimatorClusterTest, EveryRoleDoesItsWorkAndEnds) {
  const TempFolder folder;
  setenv("MODEL_DIR", folder.path().c_str(), 1);
  LaunchedProgram program(Launch({"--chief", "--workers=1", "--ps=1", "--evaluator"}, {GUIDE_002_ESTIMATOR_PROGRAM}));
  unsetenv("MODEL_DIR");
  ASSERT_EQ(program.Wait(), 0) << program.out() << program.err();
  EXPECT_THAT(program.out(), HasSubstr("[evaluator/0] ({'loss': ")) << program.err();
  // The chief has three batches; the worker has none, if it came too late, or three.
  const int64_t step = BundleReader(LatestCheckpoint(folder.path())).Read("global_step").scalar<int64_t>();
  EXPECT_GE(step, 3);
  EXPECT_LE(step, 6);
  EXPECT_THAT(program.out(), HasSubstr("'global_step': " + std::to_string(step))) << program.err();
}

TEST_F(EstimatorClusterTest, AloneItTrainsAndEvaluates) {
  LaunchedProgram program({GUIDE_002_ESTIMATOR_PROGRAM});
  ASSERT_EQ(program.Wait(), 0) << program.err();
  EXPECT_THAT(program.out(), HasSubstr("'global_step': 3}, [])"));
  EXPECT_THAT(program.err(), HasSubstr("Using temporary folder as model directory: /tmp/tmp"));
}

}  // namespace
}  // namespace cohort::testing
