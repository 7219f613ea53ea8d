// ParameterServerStrategy on servers in this process: where variables are, their parts, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/distribute/testing/parameter_servers.h"
#include "cohort/ops/math.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Floats = std::vector<float>;

class ParameterServerTest : public ParameterServers {
 protected:
  StrategyPtr Strategy(Partitioner partitioner = nullptr) { return Open(1, 2, std::move(partitioner)); }
};

TEST_F(ParameterServerTest, VariablesTakeTurnsAndOptimizersFollow) {
  const StrategyPtr strategy = Strategy();
  EXPECT_EQ(strategy->name(), "ParameterServerStrategy");
  EXPECT_EQ(strategy->num_replicas_in_sync(), 1);
  EXPECT_TRUE(strategy->is_chief());
  EXPECT_THAT(strategy->closure_workers(), ElementsAre("/job:worker/replica:0/task:0"));
  Graph graph;
  ops::Variable a, b, c, step;
  {
    const auto scope = strategy->Scope(graph);
    a = ops::GetVariable(graph, "a", Shape{4, 2});
    b = ops::GetVariable(graph, "b", Shape{2}, DType::kFloat32, initializers::Zeros());
    c = ops::GetVariable(graph, "c", Shape{1});
  }
  EXPECT_EQ(a.handle().node->device(), Ps(0));
  EXPECT_EQ(b.handle().node->device(), Ps(1));
  EXPECT_EQ(c.handle().node->device(), Ps(0));
  EXPECT_THAT(BytesByDevice(graph), ElementsAre(Pair(Ps(0), 36), Pair(Ps(1), 8)));
  train::AdagradOptimizer optimizer(0.1);
  Node* update = optimizer.Minimize(ops::Sum(ops::Square(b.value() - 1.0f)), {}, {b});
  EXPECT_EQ(optimizer.slot(b, "accumulator").handle().node->device(), Ps(1));
  const auto session = strategy->OpenSession(graph);
  session->Run(ops::GlobalVariablesInitializer(graph));
  session->Run(update);
  EXPECT_GT(session->Run(b.value()).ToVector<float>()[0], 0.09f);
}

TEST_F(ParameterServerTest, PartsBeginWithSlicesOfTheWholeDraw) {
  const StrategyPtr strategy = Strategy(FixedShardsPartitioner(3));
  Graph graph;
  graph.set_seed(7);
  ops::Variable table, scalar;
  {
    const auto scope = strategy->Scope(graph);
    table = ops::GetVariable(graph, "table", Shape{7, 2});
    scalar = ops::Variable(graph, Tensor::Scalar(1.0f), {.name = "scalar"});
  }
  const std::vector<ops::Variable> parts = table.parts();
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].name(), "table/part_0");
  EXPECT_EQ(parts[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(parts[1].shape(), (Shape{2, 2}));
  EXPECT_EQ(parts[2].shape(), (Shape{2, 2}));
  EXPECT_EQ(parts[0].handle().node->device(), Ps(0));  // 24 bytes
  EXPECT_EQ(parts[1].handle().node->device(), Ps(1));  // 16 bytes
  EXPECT_EQ(parts[2].handle().node->device(), Ps(1));  // 32 bytes
  EXPECT_TRUE(scalar.parts().empty());
  EXPECT_EQ(scalar.handle().node->device(), Ps(0));
  const auto session = strategy->OpenSession(graph);
  session->Run(ops::GlobalVariablesInitializer(graph));

  Graph alone;
  alone.set_seed(7);
  const ops::Variable whole = ops::GetVariable(alone, "table", Shape{7, 2});
  Session local(alone);
  local.Run(ops::GlobalVariablesInitializer(alone));
  EXPECT_EQ(session->Run(table.value()).ToVector<float>(), local.Run(whole.value()).ToVector<float>());
}

TEST_F(ParameterServerTest, CutsThatDoNotFitAreNamed) {
  const auto message = [&](Partitioner partitioner) {
    const StrategyPtr strategy = Strategy(std::move(partitioner));
    Graph graph;
    const auto scope = strategy->Scope(graph);
    return MessageOf<InvalidArgumentError>([&] { ops::GetVariable(graph, "w", Shape{4, 6}); });
  };
  EXPECT_THAT(message(FixedSizePartitioner(2, 1)), AllOf(HasSubstr("'w'"), HasSubstr("[4,6]"), HasSubstr("[1,2]")));
  EXPECT_THAT(message([](const Shape&, DType) {
                return std::vector<int64_t>{5, 1};
              }),
              AllOf(HasSubstr("'w'"), HasSubstr("5 parts")));
  EXPECT_THAT(message([](const Shape&, DType) { return std::vector<int64_t>{2}; }), HasSubstr("[2]"));
  EXPECT_THAT(message([](const Shape&, DType) { return std::vector<int64_t>{0, 1}; }), HasSubstr("[0,1]"));
}

TEST_F(ParameterServerTest, ClustersThatCannotTrainAreRefused) {
  const auto message = [](const ClusterSpec& cluster, std::optional<std::string> type = "chief") {
    return MessageOf<InvalidArgumentError>([&] { ParameterServerStrategy(SimpleClusterResolver(cluster, type, 0)); });
  };
  EXPECT_THAT(message({{"chief", {"h:1"}}, {"ps", {"h:2"}}}), HasSubstr("There must be at least one worker."));
  EXPECT_THAT(message({{"chief", {"h:1"}}, {"worker", {"h:2"}}}), HasSubstr("There must be at least one ps."));
  EXPECT_THAT(message(ClusterSpec()), HasSubstr("There must be at least one worker."));
  EXPECT_THAT(message({{"chief", {"h:1", "h:2"}}, {"ps", {"h:3"}}, {"worker", {"h:4"}}}), HasSubstr("one task of job"));
  EXPECT_THAT(message({{"chief", {"h:1"}}, {"ps", {"h:3"}}, {"worker", {"h:4"}}}, "worker"),
              AllOf(HasSubstr("/job:worker/task:0"), HasSubstr("Join")));
}

// Without a job "chief", sessions go through a parameter server.
TEST_F(ParameterServerTest, AClusterWithoutAChief) {
  cluster_ = std::make_unique<LocalCluster>(LocalClusterOptions{.workers = 1, .ps = 1, .server = Server()});
  const ClusterSpec& all = cluster_->cluster_spec();
  const ClusterSpec spec({{"ps", {all.task_address("ps", 0)}}, {"worker", {all.task_address("worker", 0)}}});
  const StrategyPtr strategy = ParameterServerStrategy(SimpleClusterResolver(spec));
  EXPECT_EQ(strategy->server(), nullptr);
  Graph graph;
  ops::Variable v;
  {
    const auto scope = strategy->Scope(graph);
    v = ops::Variable(graph, Tensor::Scalar(2.5f), {.name = "v"});
  }
  const auto session = strategy->OpenSession(graph);
  session->Run(ops::GlobalVariablesInitializer(graph));
  EXPECT_EQ(session->Run(v.value()).scalar<float>(), 2.5f);
}

TEST_F(ParameterServerTest, ALocalClusterNamesServersThatItDoesNotHave) {
  LocalCluster cluster({.workers = 1, .ps = 1, .server = Server()});
  EXPECT_THAT(MessageOf<NotFoundError>([&] { cluster.server("worker", 1); }), HasSubstr("/job:worker/task:1"));
  EXPECT_THAT(MessageOf<NotFoundError>([&] { cluster.server("chief", 0); }), HasSubstr("/job:chief/task:0"));
  cluster.Stop("ps", 0);
  EXPECT_THAT(MessageOf<NotFoundError>([&] { cluster.server("ps", 0); }), HasSubstr("stopped"));
  cluster.Restart("ps", 0);
  EXPECT_EQ(cluster.server("ps", 0).task(), 0);
  EXPECT_THROW(LocalCluster({.workers = -1}), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::distribute
