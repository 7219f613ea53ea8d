#include "cohort/cluster/roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

const ClusterSpec& WithChief() {
  static const ClusterSpec cluster{{"chief", {"c:1"}}, {"worker", {"w:1", "w:2"}}, {"ps", {"p:1"}}};
  return cluster;
}
const ClusterSpec& WithoutChief() {
  static const ClusterSpec cluster{{"worker", {"w:1", "w:2"}}, {"ps", {"p:1"}}, {"evaluator", {"e:1"}}};
  return cluster;
}

std::string Refusal(const ClusterSpec& cluster, const char* type, int index) {
  try {
    CheckRole(cluster, type, index);
  } catch (const InvalidArgumentError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(RolesTest, ChiefIsTheChiefJobElseWorkerZero) {
  EXPECT_TRUE(IsChief(WithChief(), "chief", 0));
  EXPECT_FALSE(IsChief(WithChief(), "worker", 0));
  EXPECT_FALSE(IsChief(WithChief(), "ps", 0));
  EXPECT_TRUE(IsChief(WithChief(), "evaluator", 0));
  EXPECT_TRUE(IsChief(WithoutChief(), "worker", 0));
  EXPECT_FALSE(IsChief(WithoutChief(), "worker", 1));
  EXPECT_FALSE(IsChief(WithoutChief(), "ps", 0));
  EXPECT_TRUE(IsChief(WithoutChief(), "evaluator", 0));
  EXPECT_TRUE(IsChief(ClusterSpec(), "", 0));
  EXPECT_THROW(IsChief(WithChief(), "worker", 2), InvalidArgumentError);
}

TEST(RolesTest, ChecksNameWhatIsWrong) {
  EXPECT_EQ(Refusal(WithChief(), "worker", 1), "accepted");
  EXPECT_EQ(Refusal(WithChief(), "evaluator", 5), "accepted");
  EXPECT_THAT(Refusal(WithChief(), "trainer", 0), HasSubstr("got 'trainer'"));
  EXPECT_THAT(Refusal(WithoutChief(), "chief", 0), HasSubstr("got 'chief' with ClusterSpec({"));
  EXPECT_THAT(Refusal(WithChief(), "worker", 2), HasSubstr("job 'worker' (0, 1); got index 2"));
  EXPECT_THAT(Refusal(WithChief(), "worker", -1), HasSubstr("got index -1"));
  EXPECT_THAT(Refusal(ClusterSpec{{"master", {"m:1"}}}, "worker", 0), HasSubstr("got 'master'"));
  EXPECT_THAT(Refusal(ClusterSpec{{"chief", {"a:1", "b:1"}}}, "chief", 0), HasSubstr("at most one chief; got 2"));
  EXPECT_THAT(Refusal(ClusterSpec{{"evaluator", {"a:1", "b:1"}}}, "evaluator", 0), HasSubstr("evaluator; got 2"));
}

TEST(RolesTest, WorkersAreCountedFromTheChiefOn) {
  EXPECT_EQ(WorkerCount(WithChief(), "worker"), 3);
  EXPECT_EQ(WorkerCount(WithoutChief(), "worker"), 2);
  EXPECT_EQ(WorkerCount(WithoutChief(), "evaluator"), 1);
  EXPECT_EQ(WorkerCount(WithChief(), "evaluator"), 1);
  EXPECT_EQ(WorkerCount(ClusterSpec(), "worker"), 1);
  EXPECT_THROW(WorkerCount(WithChief(), "ps"), InvalidArgumentError);
  EXPECT_EQ(IdInCluster(WithChief(), "chief", 0), 0);
  EXPECT_EQ(IdInCluster(WithChief(), "worker", 1), 2);
  EXPECT_EQ(IdInCluster(WithoutChief(), "worker", 1), 1);
  EXPECT_EQ(IdInCluster(WithoutChief(), "evaluator", 0), 0);
  EXPECT_EQ(IdInCluster(ClusterSpec(), "", 0), 0);
  const ClusterSpec sparse = ClusterSpec::FromSparse({{"worker", {{1, "a:1"}, {4, "b:1"}}}});
  EXPECT_EQ(IdInCluster(sparse, "worker", 1), 0);
  EXPECT_EQ(IdInCluster(sparse, "worker", 4), 1);
  EXPECT_THROW(IdInCluster(WithChief(), "ps", 0), InvalidArgumentError);
}

TEST(RolesTest, CollectiveLeader) {
  EXPECT_EQ(CollectiveLeader(WithChief(), "worker", 0), "/job:chief/replica:0/task:0");
  EXPECT_EQ(CollectiveLeader(WithoutChief(), "ps", 0), "/job:worker/replica:0/task:0");
  EXPECT_EQ(CollectiveLeader(WithoutChief(), "evaluator", 0), "");
  EXPECT_EQ(CollectiveLeader(ClusterSpec(), "", 0), "");
  EXPECT_THROW(CollectiveLeader(ClusterSpec{{"ps", {"p:1"}}}, "ps", 0), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort
