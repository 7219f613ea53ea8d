// Runs guide 002's Estimator program as a cluster of processes: chief, worker, parameter server and evaluator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <string>

#include "cohort/checkpoint/checkpoint_state.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/str_cat.h"
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

// As those of every Estimator in a cluster, the variables of this program lie on parameter servers.
TEST_F(EstimatorClusterTest, AWideAndDeepModelTrainsOnParameterServers) {
  const TempFolder folder;
  LaunchedProgram program(Launch({"--chief", "--workers=1", "--ps=2", "--evaluator"},
                                 {WIDE_AND_DEEP_PROGRAM, "--model_dir=" + folder.path(), "--max_steps=600"}));
  ASSERT_EQ(program.Wait(), 0) << program.out() << program.err();
  EXPECT_GE(NumberBehind(program.out(), ": accuracy "), 0.85) << program.out();
  EXPECT_THAT(program.out(), HasSubstr("the first person earns much with a probability of "));
  const BundleReader checkpoint(LatestCheckpoint(folder.path()));
  EXPECT_GE(checkpoint.Read("global_step").scalar<int64_t>(), 600);
  EXPECT_EQ(checkpoint.Read("linear/linear_model/country_X_job/weights").shape(), (Shape{1000, 1}));
}

// Each pattern is a line of the guide's output, without its "INFO:tensorflow:". The losses are the program's own: its
// kernel is random, and estimator_test checks the guide's losses. README.md has the lines that differ.
constexpr const char* kGuideLines[] = {
    R"(Using default config\.)",
    R"(Using temporary folder as model directory: /tmp/tmp\w+)",
    R"(Using config: \{'_model_dir': '/tmp/tmp\w+', '_tf_random_seed': None, '_save_summary_steps': 100, )"
    R"('_save_checkpoints_steps': None, '_save_checkpoints_secs': 600, '_session_config': allow_soft_placement: true)",
    R"(, '_keep_checkpoint_max': 5, '_keep_checkpoint_every_n_hours': 10000, '_log_step_count_steps': 100, )"
    R"('_train_distribute': None, '_device_fn': None, '_protocol': None, '_eval_distribute': None, )"
    R"('_experimental_distribute': None, '_experimental_max_worker_delay_secs': None, )"
    R"('_session_creation_timeout_secs': 7200, '_checkpoint_save_graph_def': True, '_service': None, )"
    R"('_cluster_spec': ClusterSpec\(\{\}\), '_task_type': 'worker', '_task_id': 0, '_global_id_in_cluster': 0, )"
    R"('_master': '', '_evaluation_master': '', '_is_chief': True, '_num_ps_replicas': 0, '_num_worker_replicas': 1\})",
    R"(Not using Distribute Coordinator\.)",
    R"(Running training and evaluation locally \(non-distributed\)\.)",
    R"(Start train and evaluate loop\. The evaluate will happen after every checkpoint\. Checkpoint frequency is )"
    R"(determined based on RunConfig arguments: save_checkpoints_steps None or save_checkpoints_secs 600\.)",
    R"(Calling model_fn\.)",
    R"(Done calling model_fn\.)",
    R"(Create CheckpointSaverHook\.)",
    R"(Graph was finalized\.)",
    R"(Running local_init_op\.)",
    R"(Done running local_init_op\.)",
    R"(Calling checkpoint listeners before saving checkpoint 0\.\.\.)",
    R"(Saving checkpoints for 0 into /tmp/tmp\w+/model\.ckpt\.)",
    R"(Calling checkpoint listeners after saving checkpoint 0\.\.\.)",
    R"(loss = [-0-9.e]+, step = 0)",
    R"(Calling checkpoint listeners before saving checkpoint 3\.\.\.)",
    R"(Saving checkpoints for 3 into /tmp/tmp\w+/model\.ckpt\.)",
    R"(Calling checkpoint listeners after saving checkpoint 3\.\.\.)",
    R"(Calling model_fn\.)",
    R"(Done calling model_fn\.)",
    R"(Starting evaluation at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)",
    R"(Graph was finalized\.)",
    R"(Restoring parameters from /tmp/tmp\w+/model\.ckpt-3)",
    R"(Running local_init_op\.)",
    R"(Done running local_init_op\.)",
    R"(Inference Time : \d+\.\d{5}s)",
    R"(Finished evaluation at \d{4}-\d\d-\d\d-\d\d:\d\d:\d\d)",
    R"(Saving dict for global step 3: global_step = 3, loss = [-0-9.e]+)",
    R"(Saving 'checkpoint_path' summary for global step 3: /tmp/tmp\w+/model\.ckpt-3)",
    R"(Loss for final step: [-0-9.e]+\.)"};

TEST_F(EstimatorClusterTest, AloneItPrintsTheLinesOfTheGuideInTheirOrder) {
  LaunchedProgram program({GUIDE_002_ESTIMATOR_PROGRAM});
  ASSERT_EQ(program.Wait(), 0) << program.err();
  ExpectLinesInOrder(program.err(), {std::begin(kGuideLines), std::end(kGuideLines)});
  EXPECT_TRUE(std::regex_search(program.out(), std::regex(R"(\(\{'loss': [-0-9.e]+, 'global_step': 3\}, \[\]\)\n$)")))
      << program.out();
  // TF_CONFIG is set and deleted again inside of the program.
  EXPECT_THAT(program.out(), HasSubstr("'ps': ['localhost:12121', 'localhost:13131']"));
  EXPECT_THAT(program.out(), HasSubstr("task chief 0\n"));
}

}  // namespace
}  // namespace cohort::testing
