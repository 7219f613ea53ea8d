#include "tools/cohort/launch_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/cluster/roles.h"
#include "cohort/cluster/tf_config.h"

namespace cohort::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Names(const JobCounts& counts) {
  std::vector<std::string> names;
  for (const TaskId& task : TasksOf(counts)) names.push_back(task.Name());
  return names;
}

TEST(LaunchLayoutTest, ServersStartFirst) {
  EXPECT_THAT(Names({.ps = 2, .workers = 2, .chief = 1, .evaluator = 1}),
              ElementsAre("ps/0", "ps/1", "chief/0", "worker/0", "worker/1", "evaluator/0"));
  EXPECT_THAT(Names({.workers = 1}), ElementsAre("worker/0"));
  EXPECT_TRUE(Names({}).empty());
  EXPECT_EQ((TaskId{"worker", 3}.FileName()), "worker-3.log");
}

TEST(LaunchLayoutTest, TFConfigIsTheTextOfTheGuides) {
  const std::vector<TaskId> tasks = TasksOf({.ps = 1, .workers = 2});
  EXPECT_EQ(TFConfigText(tasks, {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}, 2),
            R"({"cluster":{"ps":["127.0.0.1:1"],"worker":["127.0.0.1:2","127.0.0.1:3"]},)"
            R"("task":{"type":"worker","index":1}})");
}

TEST(LaunchLayoutTest, TheResolverReadsEveryTask) {
  for (int chief = 0; chief <= 1; ++chief) {
    for (int evaluator = 0; evaluator <= 1; ++evaluator) {
      for (int ps = 0; ps <= 3; ++ps) {
        const std::vector<TaskId> tasks = TasksOf({.ps = ps, .workers = 2, .chief = chief, .evaluator = evaluator});
        std::vector<std::string> addresses;
        for (size_t i = 0; i < tasks.size(); ++i) addresses.push_back("127.0.0.1:" + std::to_string(1000 + i));
        for (size_t i = 0; i < tasks.size(); ++i) {
          const TFConfig config = ParseTFConfig(TFConfigText(tasks, addresses, i));
          EXPECT_EQ(config.task_type, tasks[i].job);
          EXPECT_EQ(config.task_index, tasks[i].index);
          EXPECT_EQ(config.cluster.total_tasks(), static_cast<int>(tasks.size()) - evaluator);
          EXPECT_NO_THROW(CheckRole(config.cluster, tasks[i].job, tasks[i].index));
          if (tasks[i].InCluster()) {
            EXPECT_EQ(config.cluster.task_address(tasks[i].job, tasks[i].index), addresses[i]);
          }
        }
      }
    }
  }
}

TEST(LaunchLayoutTest, ThreadsOfATaskUnlessTheUserSetThem) {
  const CoreDivision division{.threads_per_task = 4, .threads_per_ps = 1, .shared_cores = true};
  Environment worker, ps, set{{"OMP_NUM_THREADS", "7"}, {"OMP_WAIT_POLICY", "active"}}, fixed = set;
  SetThreads({"worker", 0}, division, false, &worker);
  SetThreads({"ps", 0}, division, false, &ps);
  SetThreads({"worker", 0}, division, false, &set);
  SetThreads({"worker", 0}, division, true, &fixed);
  EXPECT_THAT(worker, UnorderedElementsAre(Pair("OMP_NUM_THREADS", "4"), Pair("OMP_WAIT_POLICY", "passive"),
                                           Pair("GOMP_SPINCOUNT", "1000")));
  EXPECT_THAT(ps, UnorderedElementsAre(Pair("OMP_NUM_THREADS", "1"), Pair("OMP_WAIT_POLICY", "passive"),
                                       Pair("GOMP_SPINCOUNT", "1000")));
  EXPECT_THAT(set, UnorderedElementsAre(Pair("OMP_NUM_THREADS", "7"), Pair("OMP_WAIT_POLICY", "active")));
  EXPECT_THAT(fixed, UnorderedElementsAre(Pair("OMP_NUM_THREADS", "4"), Pair("OMP_WAIT_POLICY", "active")));
  Environment spins{{"GOMP_SPINCOUNT", "5"}};
  SetThreads({"worker", 0}, division, false, &spins);
  EXPECT_EQ(spins["GOMP_SPINCOUNT"], "5");
  Environment alone;
  SetThreads({"worker", 0}, {.threads_per_task = 2, .threads_per_ps = 1, .shared_cores = false}, false, &alone);
  EXPECT_THAT(alone, UnorderedElementsAre(Pair("OMP_NUM_THREADS", "2")));
}

TEST(LaunchLayoutTest, ProgressBarsUnlessTheUserSaidSomething) {
  Environment none, plain{{"COHORT_PROGRESS", "plain"}};
  SetProgressBars(&none);
  SetProgressBars(&plain);
  EXPECT_THAT(none, UnorderedElementsAre(Pair("COHORT_PROGRESS", "bar")));
  EXPECT_THAT(plain, UnorderedElementsAre(Pair("COHORT_PROGRESS", "plain")));
}

TEST(LaunchLayoutTest, SecondsThatTheUserGaveReplaceThoseOfTheEnvironment) {
  Environment none, set{{"COHORT_ORPHAN_TIMEOUT", "7"}}, kept = set;
  SetSeconds("COHORT_ORPHAN_TIMEOUT", 2.5, &none);
  SetSeconds("COHORT_ORPHAN_TIMEOUT", 0.0, &set);
  SetSeconds("COHORT_ORPHAN_TIMEOUT", std::nullopt, &kept);
  EXPECT_THAT(none, UnorderedElementsAre(Pair("COHORT_ORPHAN_TIMEOUT", "2.5")));
  EXPECT_THAT(set, UnorderedElementsAre(Pair("COHORT_ORPHAN_TIMEOUT", "0")));
  EXPECT_THAT(kept, UnorderedElementsAre(Pair("COHORT_ORPHAN_TIMEOUT", "7")));
}

TEST(LaunchLayoutTest, Tokens) {
  const std::string token = NewToken();
  EXPECT_THAT(token, ::testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_NE(token, NewToken());
  Environment none, own{{"COHORT_TOKEN", "mine"}}, file{{"COHORT_TOKEN_FILE", "f"}};
  SetToken("t", &none);
  SetToken("t", &own);
  SetToken("t", &file);
  EXPECT_EQ(none["COHORT_TOKEN"], "t");
  EXPECT_EQ(own["COHORT_TOKEN"], "mine");
  EXPECT_EQ(file.count("COHORT_TOKEN"), 0u);
}

}  // namespace
}  // namespace cohort::tools
