// Tests of wrong configurations and wrong values: the program ends with an exit code that is not 0, and its text names
// what is wrong. NaN is not a wrong value.
//
// Each test starts one or more processes with the wrong input, waits for their end, and checks exit code and text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cohort/core/str_cat.h"
#include "tests/chaos/counting_model.h"
#include "tests/chaos/process_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class BadInputTest : public ::testing::Test {
 protected:
  void SetUp() override { UseTestToken(); }
};

struct Configuration {
  const char* name;
  std::string tf_config;
  std::vector<std::string> named;  // these texts are in the error
};

std::string Cluster(const std::string& jobs, const std::string& task) {
  return StrCat("{\"cluster\": {", jobs, "}, \"task\": {", task, "}}");
}

TEST_F(BadInputTest, Configurations) {
  const std::string ps = "\"ps\": [\"127.0.0.1:1\"], \"worker\": [\"127.0.0.1:2\", \"127.0.0.1:3\"]";
  const std::string first = "\"type\": \"worker\", \"index\": 0";
  const Configuration cases[] = {
      {"no JSON", "{\"cluster\": {", {"TF_CONFIG"}},
      {"no object", "[1, 2]", {"TF_CONFIG"}},
      {"a list for a job", Cluster("\"ps\": \"127.0.0.1:1\"", first), {"ps"}},
      {"a misspelt job", Cluster("\"ps_hosts\": [\"127.0.0.1:1\"]", first), {"ps_hosts", "did you mean", "ps"}},
      {"an unknown job", Cluster(ps, "\"type\": \"trainer\", \"index\": 0"), {"trainer", "worker"}},
      {"an index out of range", Cluster(ps, "\"type\": \"worker\", \"index\": 7"), {"7", "worker"}},
      {"a negative index", Cluster(ps, "\"type\": \"worker\", \"index\": -1"), {"-1"}},
      {"no port", Cluster("\"worker\": [\"127.0.0.1\"]", first), {"127.0.0.1", "port"}},
      {"a port that is none", Cluster("\"worker\": [\"127.0.0.1:99999\"]", first), {"99999"}},
      {"two tasks at one address", Cluster("\"worker\": [\"127.0.0.1:5\", \"127.0.0.1:5\"]", first), {"127.0.0.1:5"}},
      {"an own host that does not resolve",
       Cluster("\"worker\": [\"no-such-host.invalid:2222\"]", first),
       {"no-such-host.invalid:2222", "--bind"}},
      {"an own host that is not local", Cluster("\"worker\": [\"192.0.2.1:2222\"]", first), {"192.0.2.1", "--bind"}},
      {"nothing", "", {"job"}},
  };
  for (const Configuration& one : cases) {
    LaunchedProgram program({"/usr/bin/env", "RES_OPTIONS=timeout:1 attempts:1", "TF_CONFIG=" + one.tf_config,
                             ProcessCluster::ChaosTask()[0]});
    EXPECT_EQ(program.Wait(), 1) << one.name << ": " << program.err();
    EXPECT_THAT(program.err(), HasSubstr("chaos_task: ")) << one.name;
    for (const std::string& text : one.named) EXPECT_THAT(program.err(), HasSubstr(text)) << one.name;
  }
}

TEST_F(BadInputTest, APortInUse) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.Start("ps", 0);
  ASSERT_TRUE(cluster.task("ps", 0).WaitForText("serving"));
  LaunchedProgram second({"/usr/bin/env", "TF_CONFIG=" + cluster.TFConfig("ps", 0), ProcessCluster::ChaosTask()[0]});
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_THAT(second.err(), AllOf(HasSubstr("chaos_task: Unavailable"), HasSubstr("in use"),
                                  HasSubstr(cluster.address("ps", 0).substr(10))));  // the text of the port
}

TEST_F(BadInputTest, APeersHostThatDoesNotResolve) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.Advertise("ps", 0, "no-such-host.invalid:2222");
  cluster.Start("worker", 0, {"--connect_secs=1"}, {.environment = {"RES_OPTIONS=timeout:1 attempts:1"}});
  EXPECT_EQ(cluster.task("worker", 0).Wait(), 1);
  EXPECT_THAT(cluster.task("worker", 0).err(),
              AllOf(HasSubstr("chaos_task: Unavailable"), HasSubstr("/job:ps/replica:0/task:0"),
                    HasSubstr("no-such-host.invalid"), HasSubstr("resolve")));
}

TEST_F(BadInputTest, AnotherTokenIsRefusedAndDisturbsNobody) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 2}});
  cluster.Start("ps", 0);
  cluster.Start("worker", 0, {"--pause_ms=2"});
  ASSERT_TRUE(cluster.WaitForLines("worker", 0, "acked", 5)) << cluster.Describe();
  cluster.Start("worker", 1, {}, {.environment = {"COHORT_TOKEN=the token of somebody else"}});
  EXPECT_EQ(cluster.task("worker", 1).Wait(), 1) << cluster.Describe();
  EXPECT_THAT(cluster.task("worker", 1).err(), AllOf(HasSubstr("chaos_task: PermissionDenied"), HasSubstr("token"),
                                                     HasSubstr(cluster.address("ps", 0))));
  const int before = cluster.CountLines("worker", 0, "acked");
  EXPECT_TRUE(cluster.WaitForLines("worker", 0, "acked", before + 20)) << cluster.Describe();
  EXPECT_EQ(cluster.CountLines("worker", 0, "failed"), 0);
}

// Other tasks, of another cluster, run at the addresses of this cluster.
TEST_F(BadInputTest, AnotherTaskAtTheAddress) {
  ProcessCluster cluster({{"ps", 2}, {"worker", 1}});
  cluster.StartAll({"--orphan_ms=0"});
  ASSERT_TRUE(cluster.task("ps", 1).WaitForText("serving"));
  ProcessCluster mixed({{"ps", 2}, {"worker", 1}});
  mixed.Advertise("ps", 0, cluster.address("ps", 1));
  mixed.Start("worker", 0);
  EXPECT_EQ(mixed.task("worker", 0).Wait(), 1) << mixed.Describe();
  EXPECT_THAT(mixed.task("worker", 0).err(),
              AllOf(HasSubstr("chaos_task: FailedPrecondition"), HasSubstr("/job:ps/replica:0/task:0"),
                    HasSubstr("/job:ps/replica:0/task:1"), HasSubstr("different cluster specs")));
}

TEST_F(BadInputTest, ValuesThatDoNotFit) {
  struct Case {
    Arguments flags;
    std::vector<std::string> named;
  };
  const Case cases[] = {
      {{"--x_size=5"}, {"InvalidArgument", "x", "[5]", "[4]"}},
      {{"--feed=0"}, {"InvalidArgument", "feed a value", "'x'"}},
  };
  for (const Case& one : cases) {
    ProcessCluster cluster({{"ps", 1}, {"worker", 1}});
    cluster.Start("ps", 0, {"--orphan_ms=200"});
    cluster.Start("worker", 0, one.flags);
    EXPECT_EQ(cluster.task("worker", 0).Wait(), 1) << cluster.Describe();
    for (const std::string& text : one.named) EXPECT_THAT(cluster.LastLine("worker", 0, "failed"), HasSubstr(text));
    EXPECT_EQ(cluster.task("ps", 0).Wait(), 1) << cluster.Describe();
  }
}

// As in TensorFlow, a feed may hold NaN, and steps with it succeed. A graph that does not allow NaN has an Assert. Its
// error names the value and the device.
TEST_F(BadInputTest, NaNFeedsAreLegalUnlessTheGraphAssertsOtherwise) {
  ProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  cluster.StartAll({"--x=nan", "--pause_ms=2", "--steps=0"});
  EXPECT_TRUE(cluster.WaitForLines("worker", 0, "acked", 20)) << cluster.Describe();
  Graph graph;
  const DeviceScope scope(graph, "/job:ps/task:0");
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{}, "x");
  Output checked;
  {
    const ControlDependencies after(graph, {ops::Assert(ops::Equal(x, x), {x})});
    checked = ops::Identity(x);
  }
  Session session(graph, "grpc://" + cluster.address("ps", 0));
  EXPECT_EQ(session.Run({{x, Tensor::Scalar(2.0f)}}, {checked})[0].scalar<float>(), 2.0f);
  try {
    session.Run({{x, Tensor::Scalar(std::numeric_limits<float>::quiet_NaN())}}, {checked});
    FAIL() << "the Assert let NaN pass";
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(),
                AllOf(HasSubstr("assertion failed"), HasSubstr("nan"), HasSubstr("/job:ps/replica:0/task:0")));
  }
}

}  // namespace
}  // namespace cohort::testing
