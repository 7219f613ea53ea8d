#include "cohort/runtime/execution/update_barrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "cohort/core/str_cat.h"
#include "cohort/graph/topological_order.h"
#include "cohort/runtime/placement/partitioner.h"
#include "cohort/runtime/testing/graph_ops.h"

namespace cohort {
namespace {

class UpdateBarrierTest : public ::testing::Test {
 protected:
  UpdateBarrierTest() { RegisterGraphTestOps(); }

  static std::vector<std::string> Devices(const Graph& graph) {
    std::vector<std::string> devices;
    for (const Node* node : graph.nodes()) devices.push_back(node->device());
    return devices;
  }
  // Adds the barriers; the graph has no cycle afterwards.
  int Add(Graph& graph) {
    std::vector<std::string> devices = Devices(graph);
    const int count = AddUpdateBarriers(graph, devices);
    EXPECT_EQ(devices.size(), static_cast<size_t>(graph.num_nodes()));
    EXPECT_EQ(devices, Devices(graph));
    TopologicalOrder(graph);
    return count;
  }
  static bool Reaches(const Node* from, const Node* to) {
    std::set<const Node*> seen;
    std::vector<const Node*> stack = {to};
    while (!stack.empty()) {
      const Node* node = stack.back();
      stack.pop_back();
      if (node == from) return true;
      if (!seen.insert(node).second) continue;
      for (const Output& input : node->inputs()) stack.push_back(input.node);
      for (const Node* control : node->control_inputs()) stack.push_back(control);
    }
    return false;
  }
  Node* VariableResource(const std::string& name, const std::string& device) {
    return TestHandle(graph_, name, device);
  }
  Node* Update(const std::string& name, Node* variable, Node* value) {
    return TestUpdate(graph_, name, variable, value->output(0), variable->device());
  }

  const std::string worker_ = "/job:worker/replica:0/task:0/device:CPU:0";
  const std::string ps0_ = "/job:ps/replica:0/task:0/device:CPU:0";
  const std::string ps1_ = "/job:ps/replica:0/task:1/device:CPU:0";
  Graph graph_;
};

TEST_F(UpdateBarrierTest, NoUpdateRunsBeforeAllGradientsAreThere) {
  Node* g0 = TestNode(graph_, "g0", {}, worker_);
  Node* g1 = TestNode(graph_, "g1", {}, worker_);
  Node* u0 = Update("u0", VariableResource("v0", ps0_), g0);
  Node* u1 = Update("u1", VariableResource("v1", ps0_), g1);
  Node* w = Update("w", VariableResource("v2", ps1_), g1);  // alone on its device
  EXPECT_EQ(Add(graph_), 1);
  for (Node* update : {u0, u1}) {
    EXPECT_TRUE(Reaches(g0, update));
    EXPECT_TRUE(Reaches(g1, update));
    ASSERT_EQ(update->control_inputs().size(), 1u);
    EXPECT_EQ(update->control_inputs()[0]->op_name(), "NoOp");
  }
  EXPECT_EQ(u0->control_inputs(), u1->control_inputs());
  EXPECT_EQ(u0->control_inputs()[0]->control_inputs().size(), 2u);
  EXPECT_FALSE(Reaches(g0, w));
}

TEST_F(UpdateBarrierTest, BarriersAddNoMessages) {
  Node* grads = nullptr;
  for (int i = 0; i < 5; ++i) {
    const std::string n = std::to_string(i);
    grads = TestNode(graph_, "g" + n, {}, worker_);
    Update("u" + n, VariableResource("v" + n, ps0_), grads);
  }
  const size_t before = PartitionByDevice(graph_, Devices(graph_)).edges.size();
  EXPECT_EQ(before, 5u);
  EXPECT_EQ(Add(graph_), 1);
  EXPECT_EQ(PartitionByDevice(graph_, Devices(graph_)).edges.size(), before);
}

TEST_F(UpdateBarrierTest, LaterUpdatesFormASetOfTheirOwn) {
  Node* g0 = TestNode(graph_, "g0", {}, worker_);
  Node* g1 = TestNode(graph_, "g1", {}, worker_);
  Node* u0 = Update("u0", VariableResource("v0", ps0_), g0);
  Node* u1 = Update("u1", VariableResource("v1", ps0_), g1);
  // The global step counts after all updates, by way of the worker.
  Node* all = graph_.Op("NoOp").Name("all").Device(worker_).Control(u0).Control(u1).Finish();
  Node* one = TestConst(graph_, "one", ps0_);
  Node* step = Update("step", VariableResource("global_step", ps0_), one);
  step->AddControlInput(all);
  EXPECT_EQ(Add(graph_), 1);
  EXPECT_TRUE(Reaches(u0, step));
  EXPECT_FALSE(Reaches(step, u1));
  EXPECT_EQ(step->control_inputs(), std::vector<Node*>{all});
}

TEST_F(UpdateBarrierTest, AnUpdateByAConstantWaitsWithTheOthers) {
  Node* g = TestNode(graph_, "g", {}, worker_);
  Node* u = Update("u", VariableResource("v", ps0_), g);
  Node* step = Update("step", VariableResource("global_step", ps0_), TestConst(graph_, "one", worker_));
  EXPECT_EQ(Add(graph_), 1);
  EXPECT_TRUE(Reaches(g, step));
  EXPECT_EQ(u->control_inputs(), step->control_inputs());
}

TEST_F(UpdateBarrierTest, SetsThatNeedNothingGetNoBarrier) {
  Node* constant = TestConst(graph_, "constant", worker_);
  Update("u0", VariableResource("v0", ps0_), constant);
  Update("u1", VariableResource("v1", ps0_), constant);
  Node* g = TestNode(graph_, "g", {}, worker_);  // both of the other set wait for the same value
  Update("w0", VariableResource("v2", ps1_), g);
  Update("w1", VariableResource("v3", ps1_), g);
  EXPECT_EQ(Add(graph_), 0);
  EXPECT_EQ(graph_.num_nodes(), 10);
}

TEST_F(UpdateBarrierTest, FedValuesOfTheSameDeviceAreThere) {
  Node* here = graph_.Op("_Arg").Name("here").Attr("T", DType::kFloat32).Attr("index", 0).Device(ps0_).Finish();
  Node* there = graph_.Op("_Arg").Name("there").Attr("T", DType::kFloat32).Attr("index", 1).Device(worker_).Finish();
  Update("u0", VariableResource("v0", ps0_), here);
  Update("u1", VariableResource("v1", ps0_), TestConst(graph_, "one", ps0_));
  EXPECT_EQ(Add(graph_), 0);
  Node* u2 = Update("u2", VariableResource("v2", ps0_), there);
  EXPECT_EQ(Add(graph_), 1);
  ASSERT_EQ(u2->control_inputs().size(), 1u);
  EXPECT_EQ(u2->control_inputs()[0]->control_inputs(), std::vector<Node*>{there});
}

TEST_F(UpdateBarrierTest, CyclesThroughOtherDevicesAreAvoided) {
  // u0 on ps0 -> w0 on ps1, w1 on ps1 -> u1 on ps0: {u0, u1} and {w0, w1} cannot both be sets.
  Node* g0 = TestNode(graph_, "g0", {}, worker_);
  Node* g1 = TestNode(graph_, "g1", {}, worker_);
  Node* u0 = Update("u0", VariableResource("v0", ps0_), g0);
  Node* w1 = Update("w1", VariableResource("v1", ps1_), g1);
  Node* after_u0 = TestNode(graph_, "after_u0", {g0->output(0)}, worker_);
  after_u0->AddControlInput(u0);
  Node* after_w1 = TestNode(graph_, "after_w1", {g1->output(0)}, worker_);
  after_w1->AddControlInput(w1);
  Node* w0 = Update("w0", VariableResource("v2", ps1_), after_u0);
  Node* u1 = Update("u1", VariableResource("v3", ps0_), after_w1);
  EXPECT_EQ(Add(graph_), 0);
  EXPECT_FALSE(Reaches(u0, u1));
  EXPECT_FALSE(Reaches(w1, w0));
}

// Random graphs with random updates. Never a cycle; and where the levels of one device alone close none, each
// member of a set waits for the inputs of all.
TEST_F(UpdateBarrierTest, RandomGraphsStayAcyclicAndSetsWhole) {
  std::mt19937 random(11);
  const std::vector<std::string> devices = {worker_, ps0_, ps1_};
  int barriers = 0;
  for (int round = 0; round < 300; ++round) {
    Graph graph;
    std::vector<Node*> nodes;
    std::vector<Node*> updates;
    std::map<Node*, std::vector<Node*>> inputs_of;
    for (int i = 0; i < 24; ++i) {
      const std::string name = StrCat("n", i);
      const std::string& device = devices[random() % devices.size()];
      std::vector<Node*> before;
      for (Node* earlier : nodes) {
        if (random() % 7 == 0) before.push_back(earlier);
      }
      std::vector<Output> values;
      for (Node* node : before) {
        if (node->num_outputs() > 0) values.push_back(node->output(0));
      }
      Node* node;
      if (random() % 3 == 0 && !values.empty()) {
        node = TestUpdate(graph, name, TestHandle(graph, name + "/v", device), values[0], device);
        updates.push_back(node);
      } else {
        node = TestNode(graph, name, values, device);
      }
      for (Node* control : before) node->AddControlInput(control);
      inputs_of[node] = before;
      nodes.push_back(node);
    }
    barriers += Add(graph);
    // Members of a set share their barrier, and wait for everything that any of them waited for.
    std::map<Node*, std::vector<Node*>> sets;
    for (Node* update : updates) {
      for (Node* control : update->control_inputs()) {
        if (control->op_name() == "NoOp") sets[control].push_back(update);
      }
    }
    for (const auto& [barrier, members] : sets) {
      EXPECT_GE(members.size(), 2u);
      for (Node* one : members) {
        EXPECT_EQ(one->device(), barrier->device());
        for (Node* other : members) {
          for (Node* input : inputs_of.at(other)) EXPECT_TRUE(Reaches(input, one));
        }
      }
    }
    PartitionByDevice(graph, Devices(graph));
  }
  EXPECT_GT(barriers, 100);
}

}  // namespace
}  // namespace cohort
