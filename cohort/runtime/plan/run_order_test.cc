#include "cohort/runtime/plan/run_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> NamesOf(const std::vector<Node*>& order) {
  std::vector<std::string> names;
  for (const Node* node : order) names.push_back(node->name());
  return names;
}

class RunOrderTest : public ::testing::Test {
 protected:
  Output Add(const std::string& op, const std::string& name, const std::vector<Output>& inputs) {
    NodeBuilder builder = graph_.Op(op);
    builder.Name(name);
    for (const Output& input : inputs) builder.Input(input);
    return builder.Finish1();
  }
  Graph graph_;
};

TEST_F(RunOrderTest, ANodeThatFreesMoreThanItMakesComesEarly) {
  const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape{-1, 100}, "x");
  const Output a = Add("Exp", "a", {x});
  const Output b = Add("Exp", "b", {a});
  const Output c = Add("Exp", "c", {b});
  Add("Size", "of_a", {a});  // a dimension that is not known is not taken for 0
  Add("AddV2", "both", {b, c});
  EXPECT_THAT(NamesOf(RunOrder(graph_)), ElementsAre("x", "a", "of_a", "b", "c", "both"));
}

TEST_F(RunOrderTest, OthersKeepTheOrderOfAdding) {
  const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape{-1, 100}, "x");
  const Output any = ops::Placeholder(graph_, DType::kFloat32, Shape(), "any");
  const Output a = Add("Exp", "a", {x});
  const Output b = Add("Exp", "b", {a});
  Add("Neg", "as_much", {a});
  Add("Size", "not_the_last", {b});
  Add("Neg", "reads_b_later", {b});
  Add("Size", "of_constant", {ops::Const(graph_, std::vector<float>(100, 1.0f))});
  Add("AddV2", "of_unknown_rank", {any, Add("Exp", "c", {x})});
  const std::vector<std::string> names = NamesOf(RunOrder(graph_));
  std::vector<std::string> added;
  for (const Node* node : graph_.nodes()) added.push_back(node->name());
  EXPECT_EQ(names, added);
}

TEST_F(RunOrderTest, ControlInputsAndThoseWhoHaveMovedAreWaitedFor) {
  const Output x = ops::Placeholder(graph_, DType::kFloat32, Shape{-1, 100}, "x");
  const Output a = Add("Exp", "a", {x});
  const Output b = Add("Exp", "b", {a});
  Add("Exp", "c", {b});
  const Output size = Add("Size", "moves", {a});
  const Output follows = Add("AddV2", "follows", {size, size});
  graph_.Op("Size").Name("waits").Input(Add("Exp", "d", {b})).Control(follows.node).Finish();
  std::map<std::string, int> place;
  for (const std::string& name : NamesOf(RunOrder(graph_))) place.emplace(name, static_cast<int>(place.size()));
  EXPECT_LT(place["moves"], place["c"]);
  EXPECT_LT(place["a"], place["moves"]);
  EXPECT_LT(place["follows"], place["waits"]);
  EXPECT_LT(place["d"], place["waits"]);
}

TEST_F(RunOrderTest, RandomGraphsAreInOrder) {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    Graph graph;
    std::vector<Output> values = {ops::Placeholder(graph, DType::kFloat32, Shape{-1, 8}, "x")};
    for (int i = 0; i < 60; ++i) {
      const Output& one = values[random() % values.size()];
      NodeBuilder builder = graph.Op(random() % 3 == 0 ? "L2Loss" : "Exp");
      builder.Name(StrCat("n", i)).Input(one);
      if (random() % 4 == 0) builder.Control(values[random() % values.size()].node);
      values.push_back(builder.Finish1());
    }
    std::map<const Node*, size_t> place;
    for (const Node* node : RunOrder(graph)) place.emplace(node, place.size());
    ASSERT_EQ(place.size(), graph.nodes().size());
    for (const Node* node : graph.nodes()) {
      for (const Output& input : node->inputs()) EXPECT_LT(place.at(input.node), place.at(node));
      for (const Node* control : node->control_inputs()) EXPECT_LT(place.at(control), place.at(node));
    }
  }
}

}  // namespace
}  // namespace cohort
