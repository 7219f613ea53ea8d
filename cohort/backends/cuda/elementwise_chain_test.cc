// Chains of elementwise nodes on a GPU of the fake driver, compared with the nodes one by one on a CPU.
#include "cohort/backends/cuda/elementwise_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/cuda_device.h"
#include "cohort/backends/cuda/fake/host_compiler.h"
#include "cohort/backends/cuda/fake/register_fake_cuda.h"
#include "cohort/backends/cuda/kernels/chain.cu.h"
#include "cohort/backends/cuda/kernels/chain_source.h"
#include "cohort/backends/cuda/kernels/compiled_chain.h"
#include "cohort/backends/cuda/libraries/nvrtc.h"
#include "cohort/backends/cuda/testing/both_devices.h"
#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/device/step_error.h"
#include "cohort/ops/constant.h"
#include "tests/ops/interpreter.h"
#include "tests/ops/op_cases.h"

namespace cohort::cuda {
namespace {

using cohort::testing::AsType;
using cohort::testing::Interpreter;
using cohort::testing::Scatter;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Makes nodes of which each uses the one before, and runs them both ways.
class CudaChainTest : public ::testing::Test {
 protected:
  explicit CudaChainTest(DType dtype = DType::kFloat32) : dtype_(dtype) {}

  Device& device() { return *device_; }
  // Adds an operand with these values.
  Output Input(const Shape& shape, int seed) {
    const Output input = ops::Placeholder(graph_, dtype_, Shape::UnknownRank(), "input");
    feeds_.emplace_back(input, AsType(Scatter(shape, 0.1, 2.0, seed), dtype_));
    return input;
  }
  Output Constant(const Shape& shape) { return ops::Const(graph_, AsType(Scatter(shape, 0.1, 2.0, 77), dtype_)); }
  // Adds a node of one or two operands to the chain. The first node's operands are all from outside.
  Output Then(const std::string& op, const std::vector<Output>& operands) {
    NodeBuilder builder = graph_.Op(op);
    for (const Output& operand : operands) builder.Input(operand);
    nodes_.push_back(builder.Finish());
    return nodes_.back()->output(0);
  }

  std::vector<ChainLink> Links() {
    std::vector<ChainLink> links;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      ChainLink link;
      link.node = nodes_[i];
      for (int k = 0; k < nodes_[i]->num_inputs(); ++k) {
        const Output& input = nodes_[i]->input(k);
        const bool constant = input.node->op_name() == "Const";
        link.constants.push_back(constant ? device().CopyFromHost(input.node->attr<Tensor>("value")) : Tensor());
        if (i > 0 && input.node == nodes_[i - 1]) link.value_input = k;
      }
      links.push_back(std::move(link));
    }
    return links;
  }

  // Runs the chain as one kernel. `uses` is how many uses of each input are left.
  Tensor RunChain(int32_t uses = 2, std::vector<Tensor>* inputs = nullptr) {
    const auto chain = CudaBackend::Get().MakeChain(Links());
    std::vector<Tensor> slots;
    for (const Node* node : nodes_) {
      for (const Output& input : node->inputs()) {
        for (const auto& [fed, value] : feeds_) {
          if (fed == input) slots.push_back(device().CopyFromHost(value));
        }
      }
    }
    const size_t count = slots.size();
    slots.resize(count + 1);
    std::vector<int32_t> input_slots, left(slots.size(), uses);
    for (size_t i = 0; i < count; ++i) input_slots.push_back(static_cast<int32_t>(i));
    StepError error;
    StepInfo step;
    step.step_id = 1;
    step.error = &error;
    KernelContext ctx(*nodes_.back(), device(), step, slots.data(), input_slots, slots.data() + count, left.data());
    chain->Compute(ctx);
    Tensor result = device().CopyToHost(slots[count]);
    error.status().ThrowIfError();
    if (inputs != nullptr) *inputs = slots;
    return result;
  }
  Tensor RunOneByOne() { return Interpreter().Run1(nodes_.back()->output(0), feeds_); }
  void ExpectSame() { ExpectSameTensor(RunOneByOne(), RunChain(), ToleranceOf(dtype_), "chain"); }

  const DType dtype_;
  Graph graph_;
  const std::unique_ptr<Device> device_ = MakeGpuForTests();
  Interpreter::Feeds feeds_;
  std::vector<Node*> nodes_;
};

TEST_F(CudaChainTest, OneShape) {
  for (const Shape& shape : {Shape{1001}, Shape{8, 4}, Shape{0, 3}, Shape()}) {
    const Output x = Input(shape, 1), y = Input(shape, 2), z = Input(shape, 3);
    nodes_.clear();
    Output v = Then("Mul", {x, Constant(Shape())});
    v = Then("AddV2", {y, v});
    v = Then("Tanh", {v});
    v = Then("Sub", {v, z});
    Then("SquaredDifference", {v, x});
    ExpectSame();
  }
}

TEST_F(CudaChainTest, EachOp) {
  const Output x = Input({37}, 1), y = Input({37}, 2);
#define COHORT_CHECK_OP(name, function) \
  nodes_.clear();                       \
  Then(#name, {Then("Mul", {x, y})});   \
  ExpectSame();
  COHORT_UNARY_CHAIN_OPS(COHORT_CHECK_OP)
#undef COHORT_CHECK_OP
#define COHORT_CHECK_OP(name, function)  \
  nodes_.clear();                        \
  Then(#name, {y, Then("Mul", {x, y})}); \
  ExpectSame();
  COHORT_BINARY_CHAIN_OPS(COHORT_CHECK_OP)
  COHORT_GRADIENT_CHAIN_OPS(COHORT_CHECK_OP)
#undef COHORT_CHECK_OP
}

TEST_F(CudaChainTest, OperandsBroadcast) {
  const Output row = Input({5}, 1), column = Input({4, 1}, 2), both = Input({3, 4, 5}, 3), single = Input({1, 1}, 4);
  Output v = Then("Mul", {row, single});  // [1,5]
  v = Then("AddV2", {column, v});         // [4,5]
  v = Then("Exp", {v});
  v = Then("Sub", {both, v});  // [3,4,5]
  Then("Maximum", {v, Constant({4, 1})});
  ExpectSame();
}

TEST_F(CudaChainTest, ALongChainTakesSeveralLaunches) {
  Output v = Then("Neg", {Input({7, 3}, 0)});
  for (int i = 1; i < 60; ++i) {
    v = Then("AddV2", {v, Input(i % 3 == 0 ? Shape{3} : Shape{7, 3}, i)});
    v = Then("Tanh", {v});
  }
  ExpectSame();
}

// A chain of many elements gets a kernel of its own, if there is a compiler: NVRTC on a card, and otherwise the host's.
TEST_F(CudaChainTest, LargeValuesTakeACompiledKernel) {
  const bool card = TestsRunOnCard();
  if (!card && !HostCompiler::IsThere()) GTEST_SKIP() << "there is no compiler for the host";
  if (card) {
    try {
      CompileWithNvrtc("", "nothing", 9, 0);
    } catch (const FailedPreconditionError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  const Output x = Input({kCompiledChainElements}, 1), row = Input({1}, 2);
  Then("Exp", {Then("Mul", {x, row})});
  auto& compiler = *new HostCompiler;  // lives as long as the kernels
  if (!card) InstallKernelCompiler(&compiler);
  const DriverCounts& counts = RegisterGpusForTests().counts;
  const int64_t before = counts.launches_of(kChainKernel);
  ExpectSame();
  ExpectSame();
  EXPECT_EQ(counts.launches_of(kChainKernel) - before, 2);
  feeds_[0].second = AsType(Scatter({kCompiledChainElements - 1}, 0.1, 2.0, 3), dtype_);
  ExpectSame();
  EXPECT_EQ(counts.launches_of(kChainKernel) - before, 2);
  EXPECT_EQ(compiler.compiled(), card ? 0 : 1);
  InstallKernelCompiler(nullptr);
}

// A chain of common_chains.txt takes its kernel, whatever its size is, and needs no compiler.
TEST_F(CudaChainTest, ACommonChainTakesTheKernelThatWasCompiledWithTheProgram) {
  const DriverCounts& counts = RegisterGpusForTests().counts;
  for (const int64_t n : {int64_t{6}, kCompiledChainElements}) {
    nodes_.clear();
    Then("Relu", {Then("AddV2", {Input({n}, 1), Input({n}, 2)})});
    const int64_t before = counts.launches_of("chain_of_line_");
    ExpectSame();
    EXPECT_EQ(counts.launches_of("chain_of_line_"), before + 1);
  }
}

TEST_F(CudaChainTest, TheRunningValueMayBeEitherOperand) {
  for (const Shape& shape : {Shape{1}, Shape{5}}) {
    const Output row = Input(shape, 99);
    nodes_.clear();
    Output v = Then("Neg", {Input(shape, 0)});
    for (int i = 1; i < 50; ++i) {
      const Output operand = i % 2 == 0 ? Constant(Shape()) : row;
      v = i % 3 == 0 ? Then("Sub", {v, operand}) : Then("Mul", {operand, v});
    }
    ExpectSame();
  }
}

TEST_F(CudaChainTest, WorksInTheMemoryOfAValueThatNothingElseUses) {
  Then("Neg", {Then("AddV2", {Input({6}, 1), Input(Shape(), 2)})});
  const Tensor expected = RunOneByOne();
  std::vector<Tensor> slots;
  ExpectSameTensor(expected, RunChain(1, &slots), 1e-6, "in place");
  EXPECT_EQ(slots[2].raw_data(), slots[0].raw_data());
  ExpectSameTensor(expected, RunChain(2, &slots), 1e-6, "beside");
  EXPECT_NE(slots[2].raw_data(), slots[0].raw_data());
}

TEST_F(CudaChainTest, AFailureNamesTheNodeInTheChain) {
  const Output x = Input({3}, 1), y = Input({2}, 2);
  Then("Neg", {x});
  nodes_.push_back(graph_.Op("AddV2").Name("sum").Input(nodes_[0]->output(0)).Input(y).Finish());
  Then("Relu", {nodes_[1]->output(0)});
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] { RunChain(); }),
              AllOf(HasSubstr("AddV2 node 'sum'"), HasSubstr("float32[3], float32[2]")));
}

TEST_F(CudaChainTest, NeighboursHaveOneFloatingDtype) {
  const Output x = Input({3}, 1);
  const Output whole = ops::Placeholder(graph_, DType::kInt32, Shape{3}, "n");
  Then("Neg", {x});
  Then("Neg", {nodes_[0]->output(0)});
  nodes_.push_back(graph_.Op("Neg").Input(whole).Finish());
  nodes_.push_back(graph_.Op("Less").Input(x).Input(x).Finish());
  const std::vector<ChainLink> links = Links();
  EXPECT_TRUE(CudaBackend::Get().CanChain(links[0], links[1]));
  EXPECT_FALSE(CudaBackend::Get().CanChain(links[1], links[2]));
  EXPECT_FALSE(CudaBackend::Get().CanChain(links[2], links[2]));
  EXPECT_FALSE(CudaBackend::Get().CanChain(links[1], links[3]));
}

class CudaBfloat16ChainTest : public CudaChainTest {
 protected:
  CudaBfloat16ChainTest() : CudaChainTest(DType::kBfloat16) {}
};

TEST_F(CudaBfloat16ChainTest, RoundsAfterEachStep) {
  const Output x = Input({1003}, 1), y = Input({1003}, 2);
  Then("Sub", {Then("Mul", {Then("Mul", {x, y}), y}), x});
  ExpectSameTensor(RunOneByOne(), RunChain(), 0, "bfloat16");
}

}  // namespace
}  // namespace cohort::cuda
