#include "cohort/backends/cuda/passes/join_updates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/joined_updates.h"
#include "cohort/graph/rows_may_be_none.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/register.h"
#include "cohort/ops/state.h"
#include "cohort/ops/training.h"

namespace cohort::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class JoinUpdatesTest : public ::testing::Test {
 protected:
  JoinUpdatesTest() {
    RegisterOps();
    rate_ = ops::Const(g_, 0.5f);
  }

  Output Handle(const std::string& name, DType dtype = DType::kFloat32) {
    return ops::VarHandleOp(g_, dtype, Shape{3}, name, "", name);
  }
  // Returns a value that is not there from the start.
  Output Computed(DType dtype = DType::kFloat32) { return ops::Tanh(ops::Placeholder(g_, dtype, Shape{3}, "x")); }
  Node* Descent(const std::string& name, const Output& gradient) { return Descent(name, gradient, rate_); }
  Node* Descent(const std::string& name, const Output& gradient, const Output& rate) {
    return ops::ResourceApplyGradientDescent(Handle(name, gradient.dtype()), rate, gradient, "update_" + name);
  }
  // Makes the updates wait for all their gradients, as an update barrier does.
  Node* AddBarrier(const std::vector<Node*>& updates) {
    NodeBuilder builder = g_.Op("NoOp");
    for (Node* update : updates) {
      for (const Output& input : update->inputs()) {
        if (input.node->num_inputs() > 0) builder.Control(input.node);
      }
    }
    Node* const barrier = builder.Finish();
    for (Node* update : updates) update->AddControlInput(barrier);
    return barrier;
  }
  // Runs the pass. Returns for each new node the names of the updates that it joins.
  std::vector<std::vector<std::string>> Join() {
    result_ = JoinUpdatesOfOptimizers(std::move(graph_));
    std::vector<std::vector<std::string>> names;
    for (const Node* node : result_->nodes()) {
      if (const auto joined = FindJoinedUpdates(*node)) names.push_back(joined->names);
    }
    return names;
  }
  size_t CountLeft(const std::string& op) const {
    const auto& nodes = result_->nodes();
    return static_cast<size_t>(
        std::count_if(nodes.begin(), nodes.end(), [&](const Node* node) { return node->op_name() == op; }));
  }

  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  Graph& g_ = *graph_;
  Output rate_;
  std::unique_ptr<Graph> result_;
};

TEST_F(JoinUpdatesTest, UpdatesBehindABarrierBecomeOneNode) {
  Node* const a = Descent("a", Computed());
  Node* const b = Descent("b", Computed());
  Node* const c = Descent("c", Computed());
  Node* const barrier = AddBarrier({a, b, c});
  g_.Op("NoOp").Name("behind_two").Control(a).Control(c).Finish();
  g_.Op("NoOp").Name("behind_one").Control(b).Finish();
  const std::string barrier_name = barrier->name();
  EXPECT_THAT(Join(), ElementsAre(ElementsAre("update_a", "update_b", "update_c")));
  EXPECT_EQ(CountLeft("ResourceApplyGradientDescent"), 0u);
  const Node* const joined = result_->FindNode("update_a/joined");
  ASSERT_NE(joined, nullptr);
  EXPECT_EQ(joined->num_inputs(), 9);
  EXPECT_EQ(joined->input(3).node->name(), "b");
  EXPECT_EQ(joined->attr<std::string>("op"), "ResourceApplyGradientDescent");
  EXPECT_EQ(joined->attr<DType>("T"), DType::kFloat32);
  EXPECT_THAT(joined->control_inputs(), ElementsAre(result_->FindNode(barrier_name)));
  for (const char* reader : {"behind_one", "behind_two"}) {
    EXPECT_THAT(result_->FindNode(reader)->control_inputs(), ElementsAre(joined)) << reader;
  }
}

// Without a barrier, the second gradient could depend on the first update through another device.
TEST_F(JoinUpdatesTest, WithoutABarrierTheUpdatesMustWaitForTheSameNodes) {
  const Output shared = Computed();
  Descent("a", shared);
  Descent("b", Computed());
  Descent("c", shared);
  Descent("d", ops::Const(g_, std::vector<float>{1, 2, 3}));
  Descent("e", ops::Const(g_, std::vector<float>{4, 5, 6}));
  EXPECT_THAT(Join(), UnorderedElementsAre(ElementsAre("update_a", "update_c"), ElementsAre("update_d", "update_e")));
}

TEST_F(JoinUpdatesTest, ABarrierThatDoesNotWaitForAnInputDoesNotCount) {
  Node* const a = Descent("a", Computed());
  Node* const b = Descent("b", Computed());
  Node* const behind = g_.Op("NoOp").Control(a->input(2).node).Finish();
  a->AddControlInput(behind);
  b->AddControlInput(behind);
  EXPECT_THAT(Join(), IsEmpty());
  EXPECT_EQ(CountLeft("ResourceApplyGradientDescent"), 2u);
}

TEST_F(JoinUpdatesTest, AGradientThatNeedsAnotherUpdateIsNotJoinedWithIt) {
  Node* const a = Descent("a", Computed());
  Output later;
  {
    const ControlDependencies after(g_, {a});
    later = ops::Tanh(ops::ReadVariableOp(a->input(0)));
  }
  Node* const b = Descent("b", later);
  Node* const c = Descent("c", Computed());
  AddBarrier({a, c});
  AddBarrier({b});
  EXPECT_THAT(Join(), ElementsAre(ElementsAre("update_a", "update_c")));
  EXPECT_THAT(result_->FindNode("update_b")->op_name(), "ResourceApplyGradientDescent");
}

TEST_F(JoinUpdatesTest, DtypesAttributesScalarsAndOpsStayApart) {
  const Output momentum = ops::Const(g_, 0.9f);
  const auto with_momentum = [&](const std::string& name, bool nesterov) {
    return ops::ResourceApplyMomentum(Handle(name), Handle(name + "_slot"), rate_, Computed(), momentum, nesterov,
                                      "update_" + name);
  };
  const Output wide_rate = ops::Const(g_, 0.5);
  const Output other_rate = ops::Const(g_, 0.25f), computed_rate = ops::Tanh(other_rate);
  AddBarrier({Descent("a", Computed()), Descent("b", Computed(DType::kFloat64), wide_rate),
              Descent("c", Computed(), other_rate), Descent("d", Computed(), computed_rate), with_momentum("e", false),
              with_momentum("f", true), Descent("g", Computed()), Descent("h", Computed(DType::kFloat64), wide_rate),
              with_momentum("i", true)});
  EXPECT_THAT(Join(), UnorderedElementsAre(ElementsAre("update_a", "update_g"), ElementsAre("update_b", "update_h"),
                                           ElementsAre("update_f", "update_i")));
  EXPECT_EQ(CountLeft("ResourceApplyGradientDescent"), 2u);
  EXPECT_EQ(CountLeft("ResourceApplyMomentum"), 1u);
  EXPECT_TRUE(result_->FindNode("update_f/joined")->attr<bool>("use_nesterov"));
}

TEST_F(JoinUpdatesTest, EqualConstantsAreTheSameScalar) {
  AddBarrier({Descent("a", Computed(), ops::Const(g_, 0.25f)), Descent("b", Computed(), ops::Const(g_, 0.25f))});
  EXPECT_THAT(Join(), ElementsAre(ElementsAre("update_a", "update_b")));
}

TEST_F(JoinUpdatesTest, UpdatesOfOneVariableStayApart) {
  const Output again = ops::VarHandleOp(g_, DType::kFloat32, Shape{3}, "a", "", "another_handle");
  Node* const second = ops::ResourceApplyGradientDescent(again, rate_, Computed(), "second_update_a");
  AddBarrier({Descent("a", Computed()), second, Descent("b", Computed())});
  EXPECT_THAT(Join(), ElementsAre(ElementsAre("second_update_a", "update_b")));
  EXPECT_EQ(CountLeft("ResourceApplyGradientDescent"), 1u);
}

TEST_F(JoinUpdatesTest, UpdatesOfRowsBecomeOneNode) {
  const auto update = [&](const std::string& name, DType index) {
    const Output indices = ops::Identity(ops::Placeholder(g_, index, Shape{3}, StrCat(name, "_ids")));
    return ops::ResourceSparseApplyAdagrad(Handle(name), Handle(name + "_slot"), rate_, Computed(), indices,
                                           "update_" + name);
  };
  Node* const d = update("d", DType::kInt64);
  Node* const e = update("e", DType::kInt64);
  d->SetAttr(kRowsMayBeNone, true);
  e->SetAttr(kRowsMayBeNone, true);
  AddBarrier({update("a", DType::kInt64), update("b", DType::kInt32), update("c", DType::kInt64), d, e});
  EXPECT_THAT(Join(), UnorderedElementsAre(ElementsAre("update_a", "update_c"), ElementsAre("update_d", "update_e")));
  EXPECT_EQ(CountLeft("ResourceSparseApplyAdagrad"), 1u);
  const Node* const plain = result_->FindNode("update_a/joined");
  EXPECT_EQ(plain->attr<DType>("Tindices"), DType::kInt64);
  EXPECT_FALSE(plain->has_attr(kRowsMayBeNone));
  EXPECT_TRUE(result_->FindNode("update_d/joined")->attr<bool>(kRowsMayBeNone));
}

TEST_F(JoinUpdatesTest, ScattersIntoDifferentVariablesBecomeOneNode) {
  const Output indices = ops::Identity(ops::Placeholder(g_, DType::kInt32, Shape{3}, "ids"));
  const auto scatter = [&](const std::string& name) {
    return ops::ResourceScatterSub(Handle(name), indices, Computed(), "update_" + name);
  };
  AddBarrier({scatter("a"), scatter("b"), ops::ResourceScatterAdd(Handle("c"), indices, Computed())});
  EXPECT_THAT(Join(), ElementsAre(ElementsAre("update_a", "update_b")));
  EXPECT_EQ(result_->FindNode("update_a/joined")->attr<DType>("dtype"), DType::kFloat32);
}

TEST_F(JoinUpdatesTest, AGraphWithoutSuchUpdatesStaysTheSame) {
  Descent("a", Computed());
  ops::AssignAddVariableOp(Handle("b"), Computed());
  ops::AssignAddVariableOp(Handle("c"), Computed());
  const Graph* const before = graph_.get();
  EXPECT_THAT(Join(), IsEmpty());
  EXPECT_EQ(result_.get(), before);
}

}  // namespace
}  // namespace cohort::cuda
