#include "cohort/runtime/placement/partitioner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/topological_order.h"
#include "cohort/runtime/testing/graph_ops.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PartitionerTest : public ::testing::Test {
 protected:
  PartitionerTest() { RegisterGraphTestOps(); }

  // The device of each node is the one that it requests.
  PartitionedGraph Partitioned() {
    std::vector<std::string> devices;
    for (const Node* node : graph_.nodes()) devices.push_back(node->device());
    return PartitionByDevice(graph_, devices);
  }
  static int Count(const Graph& graph, const std::string& op) {
    int count = 0;
    for (const Node* node : graph.nodes()) count += node->op_name() == op;
    return count;
  }

  const std::string a_ = "/job:worker/replica:0/task:0/device:CPU:0";
  const std::string b_ = "/job:ps/replica:0/task:0/device:CPU:0";
  const std::string c_ = "/job:ps/replica:0/task:1/device:CPU:0";
  Graph graph_;
};

// What has to hold for every partitioning: edges are dense, each has one _Send and one _Recv in the right
// partitions with the same attributes, and no partition has a cycle.
void CheckEdges(const PartitionedGraph& cut) {
  std::map<int64_t, const Node*> sends;
  std::map<int64_t, const Node*> recvs;
  for (size_t p = 0; p < cut.partitions.size(); ++p) {
    TopologicalOrder(*cut.partitions[p].graph);
    for (const Node* node : cut.partitions[p].graph->nodes()) {
      const bool send = node->op_name() == "_Send";
      if (!send && node->op_name() != "_Recv") continue;
      const int64_t id = node->attr<int64_t>("edge");
      EXPECT_TRUE((send ? sends : recvs).emplace(id, node).second) << "twice: edge " << id;
      ASSERT_LT(id, static_cast<int64_t>(cut.edges.size()));
      const CrossingEdge& edge = cut.edges[static_cast<size_t>(id)];
      EXPECT_EQ(edge.id, id);
      EXPECT_EQ(send ? edge.src_partition : edge.dst_partition, static_cast<int>(p));
      EXPECT_EQ(node->attr<std::string>("tensor_name"), edge.tensor_name);
      EXPECT_EQ(node->attr<std::string>("send_device"), cut.partitions[static_cast<size_t>(edge.src_partition)].device);
      EXPECT_EQ(node->attr<std::string>("recv_device"), cut.partitions[static_cast<size_t>(edge.dst_partition)].device);
      EXPECT_EQ(send ? node->input(0).dtype() : node->output_dtype(0), edge.dtype);
    }
  }
  EXPECT_EQ(sends.size(), cut.edges.size());
  EXPECT_EQ(recvs.size(), cut.edges.size());
}

TEST_F(PartitionerTest, OneDeviceIsCopiedAsItIs) {
  Node* x = TestNode(graph_, "x", {}, a_);
  Node* y = TestNode(graph_, "y", {x->output(0), x->output(0)}, a_);
  y->AddControlInput(x);
  const PartitionedGraph cut = Partitioned();
  ASSERT_EQ(cut.partitions.size(), 1u);
  EXPECT_TRUE(cut.edges.empty());
  const Graph& part = *cut.partitions[0].graph;
  EXPECT_EQ(part.num_nodes(), 2);
  const Node* copy = part.FindNode("y");
  EXPECT_EQ(copy->num_inputs(), 2);
  EXPECT_EQ(copy->input(1).node, part.FindNode("x"));
  EXPECT_EQ(copy->control_inputs().size(), 1u);
}

TEST_F(PartitionerTest, AValueIsSentOnceToEachOtherDevice) {
  Node* x = TestNode(graph_, "x", {}, a_);
  TestNode(graph_, "b1", {x->output(0), x->output(0)}, b_);
  TestNode(graph_, "b2", {x->output(0)}, b_);
  TestNode(graph_, "c1", {x->output(0)}, c_);
  TestNode(graph_, "a1", {x->output(0)}, a_);
  const PartitionedGraph cut = Partitioned();
  CheckEdges(cut);
  ASSERT_EQ(cut.partitions.size(), 3u);
  ASSERT_EQ(cut.edges.size(), 2u);
  EXPECT_EQ(cut.edges[0].tensor_name, "x:0");
  EXPECT_EQ(cut.edges[0].dtype, DType::kFloat32);
  EXPECT_FALSE(cut.edges[0].control);
  EXPECT_EQ(cut.partitions[1].device, b_);
  const Graph& b = *cut.partitions[1].graph;
  EXPECT_EQ(b.num_nodes(), 3);
  const Node* recv = b.FindNode("b2")->input(0).node;
  EXPECT_EQ(recv->op_name(), "_Recv");
  EXPECT_EQ(recv->output_shape(0), (Shape{2}));
  EXPECT_EQ(b.FindNode("b1")->input(1).node, recv);
}

TEST_F(PartitionerTest, AControlEdgeSendsADummyOnceADevice) {
  Node* x = graph_.Op("NoOp").Name("x").Device(a_).Finish();
  Node* y = graph_.Op("NoOp").Name("y").Device(b_).Control(x).Finish();
  graph_.Op("NoOp").Name("z").Device(b_).Control(x).Control(y).Finish();
  const PartitionedGraph cut = Partitioned();
  CheckEdges(cut);
  ASSERT_EQ(cut.edges.size(), 1u);
  EXPECT_TRUE(cut.edges[0].control);
  EXPECT_EQ(cut.edges[0].tensor_name, "^x");
  const Graph& from = *cut.partitions[0].graph;
  const Node* dummy = nullptr;
  for (const Node* node : from.nodes()) {
    if (node->op_name() == "_Send") dummy = node->input(0).node;
  }
  ASSERT_NE(dummy, nullptr);
  EXPECT_EQ(dummy->control_inputs().front(), from.FindNode("x"));
  EXPECT_TRUE(dummy->output_shape(0).IsScalar());
  const Graph& to = *cut.partitions[1].graph;
  EXPECT_EQ(to.FindNode("z")->control_inputs().size(), 2u);
  EXPECT_EQ(to.FindNode("y")->control_inputs().front()->op_name(), "_Recv");
}

TEST_F(PartitionerTest, AControlEdgeUsesTheValueThatCrossesAnyway) {
  Node* x = TestNode(graph_, "x", {}, a_);
  graph_.Op("NoOp").Name("y").Device(b_).Control(x).Finish();  // before the consumer of the value
  Node* z = TestNode(graph_, "z", {x->output(0)}, b_);
  z->AddControlInput(x);
  const PartitionedGraph cut = Partitioned();
  CheckEdges(cut);
  ASSERT_EQ(cut.edges.size(), 1u);
  EXPECT_FALSE(cut.edges[0].control);
  const Graph& to = *cut.partitions[1].graph;
  EXPECT_EQ(to.FindNode("y")->control_inputs().front(), to.FindNode("z")->input(0).node);
}

TEST_F(PartitionerTest, ConstantsAreNotSent) {
  Node* constant = TestConst(graph_, "constant", a_);
  Node* y = TestNode(graph_, "y", {constant->output(0)}, b_);
  TestNode(graph_, "z", {constant->output(0), y->output(0)}, c_);
  graph_.Op("NoOp").Name("w").Device(b_).Control(constant).Finish();
  PartitionedGraph cut = Partitioned();
  CheckEdges(cut);
  EXPECT_EQ(cut.edges.size(), 1u);       // y
  ASSERT_EQ(cut.partitions.size(), 2u);  // the device of the constant has nothing to do
  for (const Partition& part : cut.partitions) EXPECT_EQ(Count(*part.graph, "Const"), 1);

  Node* x = TestNode(graph_, "x", {}, a_);
  constant->AddControlInput(x);  // now it is a value of its own time
  cut = Partitioned();
  CheckEdges(cut);
  EXPECT_EQ(cut.edges.size(), 3u);  // to b, to c, y
  ASSERT_EQ(cut.partitions.size(), 3u);
}

TEST_F(PartitionerTest, AConstantThatNobodyUsesStays) {
  TestConst(graph_, "constant", a_);
  const PartitionedGraph cut = Partitioned();
  ASSERT_EQ(cut.partitions.size(), 1u);
  EXPECT_NE(cut.partitions[0].graph->FindNode("constant"), nullptr);
}

TEST_F(PartitionerTest, RoundTripsGetBothEdges) {
  Node* read = TestNode(graph_, "read", {}, b_);
  Node* gradient = TestNode(graph_, "gradient", {read->output(0)}, a_);
  TestNode(graph_, "apply", {gradient->output(0), read->output(0)}, b_);
  const PartitionedGraph cut = Partitioned();
  CheckEdges(cut);
  ASSERT_EQ(cut.edges.size(), 2u);
  EXPECT_EQ(cut.edges[0].src_partition, cut.edges[1].dst_partition);
}

TEST_F(PartitionerTest, ResourcesDoNotCross) {
  Node* v = TestHandle(graph_, "v", b_);
  graph_.Op("TestRead").Name("read").Input(v->output(0)).Device(a_).Finish();
  try {
    Partitioned();
    FAIL();
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("'v:0' is on " + b_), HasSubstr("TestRead node 'read'"), HasSubstr(a_)));
  }
}

// Random graphs on random devices: every node is there once, on its device, with as many inputs as before,
// and what it depends on inside its partition or through pairs of _Send and _Recv is what it depended on
// before.
TEST_F(PartitionerTest, RandomGraphsKeepTheirDependencies) {
  std::mt19937 random(7);
  const std::vector<std::string> devices = {a_, b_, c_};
  for (int round = 0; round < 100; ++round) {
    Graph graph;
    std::vector<Node*> nodes;
    std::set<std::pair<std::string, std::string>> wanted;        // producer, consumer
    std::set<std::pair<std::string, std::string>> wanted_pairs;  // producer that crosses, device
    for (int i = 0; i < 20; ++i) {
      std::vector<Output> inputs;
      const std::string name = StrCat("n", i);
      const std::string& device = devices[random() % devices.size()];
      std::vector<Node*> controls;
      for (Node* earlier : nodes) {
        const unsigned kind = random() % 8;
        if (kind == 0) inputs.push_back(earlier->output(0));
        if (kind == 1) controls.push_back(earlier);
        if (kind > 1) continue;
        wanted.emplace(earlier->name(), name);
        if (earlier->device() != device) wanted_pairs.emplace(earlier->name(), device);
      }
      nodes.push_back(TestNode(graph, name, inputs, device));
      for (Node* control : controls) nodes.back()->AddControlInput(control);
    }
    std::vector<std::string> device_of_node;
    for (const Node* node : nodes) device_of_node.push_back(node->device());
    const PartitionedGraph cut = PartitionByDevice(graph, device_of_node);
    CheckEdges(cut);
    EXPECT_EQ(cut.edges.size(), wanted_pairs.size());

    std::map<int64_t, std::string> sent;  // edge -> name of the node whose value or end it carries
    for (const Partition& part : cut.partitions) {
      for (const Node* node : part.graph->nodes()) {
        if (node->op_name() != "_Send") continue;
        const Node* source = node->input(0).node;
        if (source->op_name() == "Const") source = source->control_inputs().front();
        sent[node->attr<int64_t>("edge")] = source->name();
      }
    }
    std::set<std::pair<std::string, std::string>> found;
    size_t copies = 0;
    for (const Partition& part : cut.partitions) {
      for (const Node* node : part.graph->nodes()) {
        if (node->op_name() != "TestOp") continue;
        ++copies;
        EXPECT_EQ(node->device(), part.device);
        EXPECT_EQ(node->num_inputs(), graph.FindNode(node->name())->num_inputs());
        const auto add = [&](const Node* from) {
          found.emplace(from->op_name() == "_Recv" ? sent.at(from->attr<int64_t>("edge")) : from->name(), node->name());
        };
        for (const Output& input : node->inputs()) add(input.node);
        for (const Node* control : node->control_inputs()) add(control);
      }
    }
    EXPECT_EQ(copies, nodes.size());
    EXPECT_EQ(found, wanted);
  }
}

}  // namespace
}  // namespace cohort
