#include "cohort/backends/cuda/passes/check_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/cuda/kernels/register.h"
#include "cohort/graph/copy_node.h"
#include "cohort/graph/joined_updates.h"
#include "cohort/graph/topological_order.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/math.h"
#include "cohort/ops/register.h"
#include "cohort/ops/state.h"
#include "cohort/runtime/kernels/runtime_kernels.h"

namespace cohort::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class CheckValuesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    RegisterOps();
    RegisterFakeCuda(1);
  }

  Output Handle(const std::string& name, const Shape& shape = {4}) {
    return ops::VarHandleOp(g_, DType::kFloat32, shape, name, "", name);
  }
  Output Fed(const std::string& name, DType dtype = DType::kInt32) {
    return g_.Op("_Arg").Name(name).Attr("index", int64_t{0}).Attr("T", dtype).Finish()->output(0);
  }
  Node* Scatter(const Output& handle, const Output& indices, const std::string& name) {
    return ops::ResourceScatterAdd(handle, indices, ops::Const(g_, 1.0f), name);
  }
  Node* Add(const std::string& name) {
    return ops::AssignAddVariableOp(Handle("v_" + name), ops::Const(g_, std::vector<float>{1, 2, 3, 4}), name);
  }
  // Runs the pass. Returns the names of the updates that wait for the check of the update `name`.
  std::vector<std::string> WaitingFor(const std::string& name) { return NodesWaitingFor(name + "/check_indices"); }
  // Runs the pass. Returns the names of the nodes that have a control edge from the node `name`.
  std::vector<std::string> NodesWaitingFor(const std::string& name) {
    if (graph_ != nullptr) result_ = CheckValuesFirst(std::move(graph_), kGpu);
    TopologicalOrder(*result_);  // throws if there is a cycle
    std::vector<std::string> waiting;
    const Node* const check = result_->FindNode(name);
    for (const Node* node : result_->nodes()) {
      for (const Node* control : node->control_inputs()) {
        if (control == check) waiting.push_back(node->name());
      }
    }
    return waiting;
  }

  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  Graph& g_ = *graph_;
  std::unique_ptr<Graph> result_;
};

TEST_F(CheckValuesTest, AllUpdatesWaitForAllChecks) {
  Add("first");
  Scatter(Handle("a"), Fed("i"), "scatter");
  Scatter(Handle("b"), Fed("j", DType::kInt64), "other");
  Add("last");
  EXPECT_THAT(WaitingFor("scatter"), UnorderedElementsAre("first", "scatter", "other", "last"));
  EXPECT_THAT(WaitingFor("other"), UnorderedElementsAre("first", "scatter", "other", "last"));
  const Node* const check = result_->FindNode("other/check_indices");
  EXPECT_EQ(check->input(1).node->name(), "j");
  EXPECT_EQ(check->attr<std::string>("op"), "ResourceScatterAdd");
  EXPECT_EQ(check->attr<std::string>("update"), "other");
}

TEST_F(CheckValuesTest, EachUpdateThatANodeJoinsGetsACheck) {
  Node* const a = Scatter(Handle("a"), Fed("i"), "a_rows");
  Node* const b = Scatter(Handle("b"), Fed("j"), "b_rows");
  JoinUpdates(g_, {a, b});
  graph_ = CopyWithout(*graph_, {a, b});
  ops::AssignAddVariableOp(ops::VarHandleOp(*graph_, DType::kFloat32, Shape{1}, "c"),
                           ops::Const(*graph_, std::vector<float>{1}), "add");
  EXPECT_THAT(WaitingFor("a_rows"), UnorderedElementsAre("a_rows/joined", "add"));
  EXPECT_THAT(WaitingFor("b_rows"), UnorderedElementsAre("a_rows/joined", "add"));
  const Node* const check = result_->FindNode("b_rows/check_indices");
  EXPECT_EQ(check->input(0).node->name(), "b");
  EXPECT_EQ(check->input(1).node->name(), "j");
  EXPECT_EQ(check->attr<std::string>("op"), "ResourceScatterAdd");
  EXPECT_EQ(check->attr<std::string>("update"), "b_rows");
}

TEST_F(CheckValuesTest, AnUpdateBeforeAllOthersChecksItself) {
  Node* const scatter = Scatter(Handle("a"), Fed("i"), "scatter");
  {
    const ControlDependencies after(g_, {scatter});
    Add("later");
  }
  EXPECT_THAT(WaitingFor("scatter"), IsEmpty());
  EXPECT_EQ(result_->FindNode("scatter/check_indices"), nullptr);
}

TEST_F(CheckValuesTest, WhatTheIndicesNeedDoesNotWait) {
  Node* const first = Add("first");
  Output computed;
  {
    const ControlDependencies after(g_, {first});
    computed = ops::Cast(ops::ReadVariableOp(first->input(0)), DType::kInt32);
  }
  Node* const scatter = Scatter(Handle("a"), computed, "scatter");
  Node* const beside = Add("beside");
  Node* const behind = Add("behind");
  behind->AddControlInput(computed.node);
  EXPECT_NE(beside, scatter);
  EXPECT_THAT(WaitingFor("scatter"), UnorderedElementsAre("scatter", "behind"));
}

// Each of two updates gives the other's set its indices. If all independent updates waited, there would be a cycle.
TEST_F(CheckValuesTest, ChecksDoNotWaitForEachOther) {
  std::vector<Output> computed;
  for (const char* name : {"first", "second"}) {
    Node* const add = Add(name);
    const ControlDependencies after(g_, {add});
    computed.push_back(ops::Cast(ops::ReadVariableOp(add->input(0)), DType::kInt32));
  }
  Scatter(Handle("a"), computed[0], "a");
  Scatter(Handle("b"), computed[1], "b");
  EXPECT_THAT(WaitingFor("a"), IsEmpty());
  EXPECT_THAT(WaitingFor("b"), IsEmpty());
}

// A received value may depend on any update of this partition through another device.
TEST_F(CheckValuesTest, WithReceivedIndicesOnlyTheirReadersWait) {
  const Output received = g_.Op("_Recv")
                              .Name("received")
                              .Attr("tensor_name", std::string("x"))
                              .Attr("send_device", std::string("/device:CPU:0"))
                              .Attr("recv_device", std::string("/device:GPU:0"))
                              .Attr("tensor_type", DType::kInt32)
                              .Attr("shape", Shape{-1})
                              .Attr("edge", int64_t{1})
                              .Finish()
                              ->output(0);
  Scatter(Handle("a"), received, "scatter");
  Add("beside");
  Node* const behind = Add("behind");
  behind->AddControlInput(received.node);
  EXPECT_THAT(WaitingFor("scatter"), UnorderedElementsAre("scatter", "behind"));
}

// The assignment may change the number of rows.
TEST_F(CheckValuesTest, AVariableThatMayGetOtherRowsIsNotChecked) {
  const Output open = Handle("open", Shape::UnknownRank());
  ops::AssignVariableOp(open, Fed("value", DType::kFloat32), "assign");
  Scatter(open, Fed("i"), "scatter");
  Scatter(Handle("known", Shape{4, Shape::kUnknownDim}), Fed("j"), "known_rows");
  EXPECT_THAT(WaitingFor("scatter"), IsEmpty());
  EXPECT_THAT(WaitingFor("known_rows"), UnorderedElementsAre("assign", "scatter", "known_rows"));
}

// Values that are only fetched, or that one update needs.
TEST_F(CheckValuesTest, UpdatesWaitForValuesThatTheyDoNotNeed) {
  Node* const first = Add("first");
  const Output table = ops::Const(g_, std::vector<float>{1, 2, 3, 4});
  const Output row = ops::Gather(table, Fed("i"), 0, 0, "row");
  ops::AssignAddVariableOp(Handle("v"), row, "second");
  ops::FloorDiv(Fed("dividend"), Fed("divisor"), "quotient");
  ops::FloorDiv(Fed("x", DType::kFloat32), Fed("y", DType::kFloat32), "no_integers");
  const ControlDependencies after(g_, {first});
  ops::FloorDiv(Fed("later"), Fed("divisor_of_it"), "behind_an_update");
  EXPECT_THAT(NodesWaitingFor("row"), UnorderedElementsAre("first"));
  EXPECT_THAT(NodesWaitingFor("quotient"), UnorderedElementsAre("first", "second"));
  EXPECT_THAT(NodesWaitingFor("no_integers"), IsEmpty());
  EXPECT_THAT(NodesWaitingFor("behind_an_update"), IsEmpty());
}

TEST_F(CheckValuesTest, AGraphWithoutChecksStaysTheSame) {
  Add("first");
  const int before = g_.num_nodes();
  EXPECT_THAT(WaitingFor("first"), IsEmpty());
  EXPECT_EQ(result_->num_nodes(), before);
}

}  // namespace
}  // namespace cohort::cuda
