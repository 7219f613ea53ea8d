// Runs functions, branches and loops on the tasks of a cluster in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "cohort/cluster/cluster_node.h"
#include "cohort/cluster/server.h"
#include "cohort/cluster/server_directory.h"
#include "cohort/cluster/transport.h"
#include "cohort/cohort.h"
#include "tests/cluster/local_cluster.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::LocalCluster;
using testing::VariableOn;
using Outputs = std::vector<Output>;

class ControlFlowClusterTest : public ::testing::TestWithParam<std::string> {
 protected:
  static ServerOptions Options() {
    ServerOptions options = LocalCluster::FastOptions();
    options.protocol = GetParam();
    return options;
  }
  static Outputs Always(Graph& g, const Outputs&) { return {ops::Const(g, true)}; }
};
INSTANTIATE_TEST_SUITE_P(All, ControlFlowClusterTest, ::testing::ValuesIn(TransportProtocols()),
                         [](const auto& info) { return info.param; });

// The loop and its gradient run on a worker, and the variable is on a ps. Both get the functions with their parts of
// the graph.
TEST_P(ControlFlowClusterTest, TrainsALoop) {
  LocalCluster cluster({{"ps", 1}, {"worker", 2}}, Options());
  Graph g;
  const ops::Variable w = VariableOn(g, "/job:ps/task:0", ops::Const(g, std::vector<float>{0.5f, 2}), "w");
  ops::WhileOptions three;
  three.maximum_iterations = 3;
  Output y;
  {
    const DeviceScope scope(g, "/job:worker/task:1");
    const Output value = w.value();
    const Outputs last = ops::While(
        {ops::OnesLike(value)}, Always,
        [&](Graph& body, const Outputs& v) {
          return ops::If(
              ops::Less(ops::Sum(v[0]), ops::Const(body, 100.0f)), {v[0]},
              [&](Graph&, const Outputs& x) { return Outputs{x[0] * value}; },
              [](Graph&, const Outputs& x) { return x; });
        },
        three);
    y = last[0];
  }
  const Output slope = Gradients({y}, {w.handle()})[0].values;
  Node* update = w.AssignSub(slope * 0.125f);
  Session session(g, cluster.target("worker", 0));
  session.Run(w.initializer());
  const auto before = session.Run({}, {y, slope});
  EXPECT_THAT(before[0].ToVector<float>(), ElementsAre(0.125f, 8));
  EXPECT_THAT(before[1].ToVector<float>(), ElementsAre(0.75f, 12));
  session.Run(update);
  EXPECT_THAT(session.Run(w.value()).ToVector<float>(), ElementsAre(0.5f - 0.09375f, 0.5f));
}

TEST_P(ControlFlowClusterTest, ALoopEndsWhenATaskOfItsStepIsLost) {
  LocalCluster cluster({{"ps", 2}, {"worker", 1}}, Options());
  Graph g;
  Output loop, sum;
  {
    const DeviceScope scope(g, "/job:ps/task:0");
    loop = ops::While({ops::Const(g, 0)}, Always,
                      [](Graph& body, const Outputs& v) { return Outputs{v[0] + ops::Const(body, 1)}; })[0];
  }
  {
    const DeviceScope scope(g, "/job:ps/task:1");
    sum = loop + ops::Const(g, 1);
  }
  Session session(g, cluster.target("worker", 0));
  std::string message;
  std::thread user([&] {
    try {
      session.Run(sum);
    } catch (const Error& error) {
      message = error.what();
    }
  });
  const auto ps = ServerDirectory::Global().Find(cluster.target("ps", 0));
  while (ps->local_task()->DescribeSteps().empty()) std::this_thread::yield();
  cluster.Stop("ps", 1);
  user.join();
  EXPECT_THAT(message, HasSubstr("/job:ps/replica:0/task:1"));
  while (!ps->local_task()->DescribeSteps().empty()) std::this_thread::yield();
}

TEST_P(ControlFlowClusterTest, AnErrorInABodyComesBackWithItsPlace) {
  LocalCluster cluster({{"ps", 1}, {"worker", 1}}, Options());
  Graph g;
  const DeviceScope scope(g, "/job:ps/task:0");
  const Output y = ops::Call(
      g, {ops::Const(g, 1)},
      [](Graph& body, const Outputs& x) { return Outputs{ops::FloorDiv(x[0], ops::Sub(x[0], ops::Const(body, 1)))}; },
      "ratio")[0];
  Session session(g, cluster.target("worker", 0));
  try {
    session.Run(y);
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("FloorDiv node 'FloorDiv' on /job:ps/replica:0/task:0/device:CPU:0"));
    EXPECT_THAT(error.what(), HasSubstr("in function 'ratio_function', called by PartitionedCall node 'ratio'"));
  }
}

}  // namespace
}  // namespace cohort
