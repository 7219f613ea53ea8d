#include "cohort/estimator/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort::estimator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TaskRole RoleIn(const std::string& tf_config) { return RoleOf({.tf_config = tf_config}); }

TEST(RunConfigTest, WithoutAClusterTheProcessIsTheChief) {
  const TaskRole role = RoleIn("");
  EXPECT_EQ(role.task_type, "worker");
  EXPECT_TRUE(role.is_chief);
  EXPECT_EQ(role.num_worker_replicas, 1);
  EXPECT_EQ(role.master, "");
}

TEST(RunConfigTest, TasksAreNumberedChiefFirstAndPsLast) {
  const std::string cluster =
      R"({"cluster": {"chief": ["h:1"], "worker": ["h:2", "h:3"], "ps": ["h:4", "h:5"]}, "task": {"type": ")";
  const TaskRole chief = RoleIn(cluster + R"(chief", "index": 0}})");
  EXPECT_TRUE(chief.is_chief);
  EXPECT_EQ(chief.global_id_in_cluster, 0);
  EXPECT_EQ(chief.num_worker_replicas, 3);
  EXPECT_EQ(chief.num_ps_replicas, 2);
  EXPECT_EQ(chief.master, "grpc://h:1");
  const TaskRole worker = RoleIn(cluster + R"(worker", "index": 1}})");
  EXPECT_FALSE(worker.is_chief);
  EXPECT_EQ(worker.global_id_in_cluster, 2);
  EXPECT_EQ(RoleIn(cluster + R"(ps", "index": 1}})").global_id_in_cluster, 4);
  const TaskRole evaluator = RoleIn(cluster + R"(evaluator", "index": 0}})");
  EXPECT_EQ(evaluator.task_type, "evaluator");
  EXPECT_TRUE(evaluator.cluster_spec.empty());
  EXPECT_EQ(evaluator.num_worker_replicas, 0);
}

TEST(RunConfigTest, AClusterNeedsOneChiefAndAWholeTask) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                RoleIn(R"({"cluster": {"worker": ["h:2"], "ps": ["h:4"]}, "task": {"type": "worker", "index": 0}})");
              }),
              AllOf(HasSubstr("chief"), HasSubstr("'worker': ['h:2']")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { RoleIn(R"({"cluster": {"chief": ["h:2"]}})"); }), HasSubstr("type"));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { RoleIn(R"({"task": {"type": "ps", "index": 0}})"); }),
              HasSubstr("expected a cluster"));
}

TEST(RunConfigTest, BadFieldsAreNamed) {
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] {
                CheckRunConfig({.save_checkpoints_steps = 5, .save_checkpoints_interval = std::chrono::seconds(7)});
              }),
              AllOf(HasSubstr("save_checkpoints_steps"), HasSubstr("5"), HasSubstr("7")));
  EXPECT_THAT(MessageOf<InvalidArgumentError>([] { CheckRunConfig({.keep_checkpoint_max = -2}); }),
              AllOf(HasSubstr("keep_checkpoint_max"), HasSubstr("-2")));
}

TEST(RunConfigTest, IsPrintedAsTensorFlowPrintsIt) {
  const std::string text = ToString({.model_dir = "/tmp/m", .tf_config = ""}, TaskRole());
  EXPECT_THAT(text, HasSubstr("{'_model_dir': '/tmp/m', '_tf_random_seed': None, '_save_summary_steps': 100, "
                              "'_save_checkpoints_steps': None, '_save_checkpoints_secs': 600, '_session_config': "
                              "allow_soft_placement: true\n"));
  EXPECT_THAT(text, HasSubstr("'_session_creation_timeout_secs': 7200, '_checkpoint_save_graph_def': True, '_service': "
                              "None, '_cluster_spec': ClusterSpec({}), '_task_type': 'worker', '_task_id': 0, "
                              "'_global_id_in_cluster': 0, '_master': '', '_evaluation_master': '', '_is_chief': True, "
                              "'_num_ps_replicas': 0, '_num_worker_replicas': 1}"));
}

}  // namespace
}  // namespace cohort::estimator
