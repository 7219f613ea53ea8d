// Tests the placement of variables in a running cluster: each is on the parameter server that the strategy chooses, and
// on no other.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "cohort/cohort.h"
#include "cohort/core/str_cat.h"
#include "tests/cluster/local_cluster.h"

namespace cohort {
namespace {

using testing::LocalCluster;

struct Declared {
  const char* name;
  Shape shape;
};

const std::vector<Declared>& Variables() {
  static const std::vector<Declared> all = {
      {"a", Shape{100, 10}}, {"b", Shape{10}}, {"c", Shape{10, 10}}, {"d", Shape{}}, {"e", Shape{7}}};
  return all;
}

// Makes and initializes the variables as worker 0 of a replicated program does.
void Initialize(LocalCluster& cluster, train::PsStrategy strategy) {
  Graph g;
  const DeviceScope replica(
      g, train::ReplicaDeviceSetter(
             {.worker_device = "/job:worker/task:0", .cluster = cluster.spec(), .ps_strategy = std::move(strategy)}));
  for (const Declared& one : Variables()) ops::GetVariable(g, one.name, one.shape, DType::kFloat32, ops::Ones());
  Session session(g, cluster.target("worker", 0));
  session.Run(ops::GlobalVariablesInitializer(g));
}

// Returns the variables that `ps` holds, and checks that each is complete. It reads them from that task by name,
// without the program's graph.
std::vector<std::string> HeldBy(LocalCluster& cluster, int ps) {
  Graph g;
  const DeviceScope scope(g, StrCat("/job:ps/task:", ps));
  std::map<std::string, ops::Variable> variables;
  for (const Declared& one : Variables()) {
    variables[one.name] = ops::GetVariable(g, one.name, one.shape, DType::kFloat32, ops::Zeros());
  }
  Session session(g, cluster.target("ps", ps));
  std::vector<std::string> held;
  for (const Declared& one : Variables()) {
    if (!session.Run(variables[one.name].is_initialized()).scalar<bool>()) continue;
    const Tensor value = session.Run(variables[one.name].value());
    EXPECT_EQ(value.shape(), one.shape);
    EXPECT_EQ(value.ToVector<float>(), std::vector<float>(static_cast<size_t>(value.num_elements()), 1.0f));
    held.push_back(one.name);
  }
  return held;
}

TEST(PlacementTest, BytesLieOnTheParameterServerThatRoundRobinSays) {
  LocalCluster cluster({{"ps", 2}, {"worker", 1}});
  Initialize(cluster, nullptr);
  EXPECT_EQ(HeldBy(cluster, 0), (std::vector<std::string>{"a", "c", "e"}));
  EXPECT_EQ(HeldBy(cluster, 1), (std::vector<std::string>{"b", "d"}));
}

TEST(PlacementTest, BytesLieWhereTheyAreBalanced) {
  LocalCluster cluster({{"ps", 2}, {"worker", 1}});
  Initialize(cluster, train::GreedyLoadBalancingStrategy(2, train::ByteSizeLoad));
  EXPECT_EQ(HeldBy(cluster, 0), (std::vector<std::string>{"a"}));  // it has 4 000 bytes; the others have 472 together
  EXPECT_EQ(HeldBy(cluster, 1), (std::vector<std::string>{"b", "c", "d", "e"}));
}

}  // namespace
}  // namespace cohort
