#include "cohort/runtime/plan/plan_compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/runtime/placement/memory_placement.h"
#include "cohort/runtime/testing/device_kinds.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> OpsOf(const Plan& plan) {
  std::vector<std::string> ops;
  for (const PlanNode& node : plan.nodes) ops.push_back(node.node->op_name());
  return ops;
}

class PlanCompilerTest : public testing::DeviceKindTest {
 protected:
  PlanCompilerTest()
      : devices_(BackendRegistry::Global().MakeDevices(DeviceName::Parse("/job:localhost/replica:0/task:0"),
                                                       {{GetParam(), 1}}, 1, std::make_shared<TaskResources>(),
                                                       "test")) {
    x_ = graph_->Op("_Arg").Attr("T", DType::kFloat32).Attr("index", 0).Attr("shape", Shape{2}).Finish1();
  }

  Output Const(float value) { return ops::Const(*graph_, value); }
  void Return(Output value) { graph_->Op("_Retval").Input(value).Attr("index", 0).Finish(); }
  std::unique_ptr<const Plan> Compile() { return CompilePlan(std::move(graph_), *devices_.back(), nullptr); }

  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  Output x_;
};

TEST_P(PlanCompilerTest, NeighboursThatFeedOnlyEachOtherAreOneNode) {
  Return(ops::Relu(ops::Add(ops::Mul(x_, Const(2)), Const(1))));
  const auto plan = Compile();
  if (has_chains()) {
    EXPECT_THAT(OpsOf(*plan), ElementsAre("_Arg", "Relu", "_Retval"));
    EXPECT_THAT(plan->constants, ::testing::IsEmpty());  // the chain holds them
    EXPECT_EQ(plan->initial_uses.size(), 2u);
  } else {
    EXPECT_THAT(OpsOf(*plan), ElementsAre("_Arg", "Mul", "AddV2", "Relu", "_Retval"));
    EXPECT_EQ(plan->constants.size(), 2u);
  }
}

TEST_P(PlanCompilerTest, AValueWithTwoReadersEndsAChain) {
  const Output doubled = ops::Mul(x_, Const(2));
  Return(ops::Mul(ops::Relu(doubled), doubled));
  const std::vector<std::string> ops = OpsOf(*Compile());
  if (has_chains()) {
    EXPECT_THAT(ops, ElementsAre("_Arg", "Mul", "Mul", "_Retval"));
  } else {
    EXPECT_THAT(ops, ElementsAre("_Arg", "Mul", "Relu", "Mul", "_Retval"));
  }
}

TEST_P(PlanCompilerTest, AValueThatIsReadTwiceByOneNodeEndsAChain) {
  const Output doubled = ops::Mul(x_, Const(2));
  Return(ops::Mul(doubled, doubled));
  EXPECT_THAT(OpsOf(*Compile()), ElementsAre("_Arg", "Mul", "Mul", "_Retval"));
}

TEST_P(PlanCompilerTest, AControlEdgeBetweenNeighboursKeepsThemApart) {
  const Output doubled = ops::Mul(x_, Const(2));
  Node* relu = graph_->Op("Relu").Input(doubled).Control(x_.node).Finish();
  Return(relu->output(0));
  EXPECT_THAT(OpsOf(*Compile()), ElementsAre("_Arg", "Mul", "Relu", "_Retval"));
}

TEST_P(PlanCompilerTest, WhatAChainNeedsStandsBeforeItsLastNode) {
  const Output doubled = ops::Mul(x_, Const(2));
  const Output sum = ops::Sum(x_, {0});  // after the chain's first node
  Return(ops::Add(doubled, sum));
  const auto plan = Compile();
  const std::vector<std::string> ops = OpsOf(*plan);
  if (has_chains()) {
    EXPECT_THAT(ops, ElementsAre("_Arg", "Sum", "AddV2", "_Retval"));
    EXPECT_THAT(plan->initial_pending, ElementsAre(0, 1, 2, 1));
  }
  for (size_t i = 0; i < plan->nodes.size(); ++i) {
    const PlanNode& node = plan->nodes[i];
    for (int32_t k = 0; k < node.num_successors; ++k) {
      EXPECT_GT(plan->successors[static_cast<size_t>(node.successor_begin + k)], static_cast<int32_t>(i));
    }
  }
}

TEST_P(PlanCompilerTest, HostKernelsServeEveryDeviceInHostMemory) {
  const Output truth = graph_->Op("Less").Input(ops::Sum(x_, {0})).Input(Const(9)).Finish1();
  graph_->Op("Assert").Input(truth).Inputs({x_}).Finish();
  Return(x_);
  const auto plan = Compile();
  int asserts = 0;
  for (const PlanNode& node : plan->nodes) {
    if (node.node->op_name() != "Assert") {
      EXPECT_FALSE(node.on_host) << node.node->name();
      continue;
    }
    ++asserts;
    EXPECT_EQ(node.on_host, !is_cpu());
    for (const Output& input : node.node->inputs()) {
      if (!is_cpu()) {
        EXPECT_TRUE(LiesInHostMemory(input)) << input.name();
      }
    }
  }
  EXPECT_EQ(asserts, 1);
}

INSTANTIATE_TEST_SUITE_P(Devices, PlanCompilerTest, testing::AllDeviceKinds(), testing::DeviceKindName);

}  // namespace
}  // namespace cohort
