#include "cohort/backends/cpu/elementwise_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "cohort/backends/cpu/cpu_backend.h"
#include "cohort/backends/cpu/cpu_device.h"
#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/runtime/testing/device_kinds.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// relu(x * -1 + y) - 0.5 as one kernel, and what a plan would keep for it: slots 0 and 1 hold x and y, slot 2 the
// result.
class ElementwiseChainTest : public ::testing::Test {
 protected:
  ElementwiseChainTest()
      : devices_(MakeCpuDevices(DeviceName::Parse("/job:localhost/task:0"), 1, 1, std::make_shared<TaskResources>())) {
    x_ = ops::Placeholder(graph_, DType::kFloat32, Shape::UnknownRank(), "x");
    y_ = ops::Placeholder(graph_, DType::kFloat32, Shape::UnknownRank(), "y");
    nodes_.push_back(ops::Mul(x_, ops::Const(graph_, -1.0f)).node);
    nodes_.push_back(graph_.Op("AddV2").Name("sum").Input(nodes_[0]->output(0)).Input(y_).Finish());
    nodes_.push_back(ops::Relu(nodes_[1]->output(0)).node);
    nodes_.push_back(ops::Sub(nodes_[2]->output(0), ops::Const(graph_, 0.5f)).node);
  }

  ChainLink Link(size_t i) {
    ChainLink link;
    link.node = nodes_[i];
    link.kernel = KernelRegistry::Global().Create({*nodes_[i], *devices_[0]});
    for (const Output& input : nodes_[i]->inputs()) {
      const bool constant = input.node->op_name() == "Const";
      link.constants.push_back(constant ? input.node->attr<Tensor>("value") : Tensor());
    }
    link.value_input = i == 0 ? -1 : 0;
    return link;
  }

  std::unique_ptr<OpKernel> Chain() {
    std::vector<ChainLink> links;
    for (size_t i = 0; i < nodes_.size(); ++i) links.push_back(Link(i));
    return CpuBackend::Get().MakeChain(std::move(links));
  }

  Tensor Run(OpKernel& chain, Tensor x, Tensor y) {
    slots_[0] = std::move(x);
    slots_[1] = std::move(y);
    slots_[2].Reset();
    KernelContext ctx(*nodes_.back(), *devices_[0], step_, slots_, input_slots_, slots_ + 2, uses_);
    chain.Compute(ctx);
    return slots_[2];
  }

  Graph graph_;
  Output x_;
  Output y_;
  std::vector<Node*> nodes_;
  std::vector<std::unique_ptr<Device>> devices_;
  StepInfo step_;
  Tensor slots_[3];
  const int32_t input_slots_[2] = {0, 1};
  int32_t uses_[3] = {1, 1, 1};
};

TEST_F(ElementwiseChainTest, OnePassOverValuesOfOneShape) {
  const auto chain = Chain();
  const Tensor y = Tensor::Vector<float>({1, 1, 4});
  EXPECT_THAT(Run(*chain, Tensor::Vector<float>({1, -2, 3}), y).ToVector<float>(), ElementsAre(-0.5f, 2.5f, 0.5f));
  EXPECT_THAT(Run(*chain, Tensor::Vector<float>({1, -2, 3}), Tensor::Scalar(2.0f)).ToVector<float>(),
              ElementsAre(0.5f, 3.5f, -0.5f));
}

TEST_F(ElementwiseChainTest, WorksInTheMemoryOfAValueThatNothingElseUses) {
  const auto chain = Chain();
  const Tensor x = Tensor::Vector<float>({1, -2, 3});
  const void* memory = x.raw_data();
  EXPECT_NE(Run(*chain, x, Tensor::Scalar(2.0f)).raw_data(), memory);  // `x` holds it
  slots_[2].Reset();
  const Tensor in_place = Run(*chain, x.Clone(), Tensor::Scalar(2.0f));
  EXPECT_EQ(in_place.raw_data(), slots_[0].raw_data());
}

TEST_F(ElementwiseChainTest, KernelsRunOneByOneWhereAnOperandBroadcasts) {
  const auto chain = Chain();
  const Tensor column = Tensor::Vector<float>({1, 4}).Reshaped(Shape{2, 1});
  const Tensor result = Run(*chain, Tensor::Vector<float>({1, -2, 3}), column);
  EXPECT_EQ(result.shape(), (Shape{2, 3}));
  EXPECT_THAT(result.ToVector<float>(), ElementsAre(-0.5f, 2.5f, -0.5f, 2.5f, 5.5f, 0.5f));
  EXPECT_THAT(Run(*chain, Tensor::Scalar(1.0f), Tensor::Vector<float>({1, 4})).ToVector<float>(),
              ElementsAre(-0.5f, 2.5f));
}

TEST_F(ElementwiseChainTest, OneByOneTakesOverWhatNothingElseUsesAndKeepsTheRest) {
  const auto chain = Chain();
  const Tensor row = Tensor::Vector<float>({1, 2});
  Run(*chain, Tensor::Vector<float>({1, 2, 3, 4}).Reshaped(Shape{2, 2}), row);
  EXPECT_FALSE(slots_[0].defined());
  uses_[0] = 2;
  Run(*chain, Tensor::Vector<float>({1, 2, 3, 4}).Reshaped(Shape{2, 2}), row);
  EXPECT_THAT(slots_[0].ToVector<float>(), ElementsAre(1, 2, 3, 4));
}

TEST_F(ElementwiseChainTest, AFailureNamesTheNodeInTheChain) {
  const auto chain = Chain();
  const std::string message = MessageOf<InvalidArgumentError>([&] {
    Run(*chain, Tensor::Vector<float>({1, 2, 3}), Tensor::Vector<float>({1, 2}));
  });
  EXPECT_THAT(message, AllOf(HasSubstr("AddV2 node 'sum'"), HasSubstr("float32[3], float32[2]")));
}

TEST_F(ElementwiseChainTest, NeighboursHaveOneDtypeAndElementwiseKernels) {
  EXPECT_TRUE(CpuBackend::Get().CanChain(Link(0), Link(1)));
  const Output cast = ops::Cast(nodes_.back()->output(0), DType::kFloat64);
  nodes_.push_back(cast.node);
  EXPECT_FALSE(CpuBackend::Get().CanChain(Link(3), Link(4)));
  nodes_.push_back(graph_.Op("FloorDiv").Input(x_).Input(y_).Finish());
  EXPECT_TRUE(CpuBackend::Get().CanChain(Link(3), Link(5)));
  const Output whole = ops::Placeholder(graph_, DType::kInt32, Shape::UnknownRank(), "n");
  nodes_.push_back(graph_.Op("FloorDiv").Input(whole).Input(whole).Finish());  // refuses a divisor of 0
  EXPECT_FALSE(CpuBackend::Get().CanChain(Link(6), Link(6)));
}

}  // namespace
}  // namespace cohort
