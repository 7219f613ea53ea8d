// Which activations the pass moves into other kernels, and that the graph then computes the same bits.
#include "cohort/backends/cuda/passes/move_activations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cohort/backends/cpu/passes/image_gradient_fusion.h"
#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/compare.h"
#include "cohort/graph/copy_node.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/testing/activation_ops.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/convolution.h"
#include "cohort/ops/math.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/pooling.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

// Names of gradients and activations in a graph: "op" of a node of its own, "op in OP" of one that another node
// applies.
std::vector<std::string> ActivationsIn(const Graph& graph) {
  std::vector<std::string> found;
  for (const Node* node : graph.nodes()) {
    if (node->op().is_activation() || node->op().activation_gradient()) found.push_back(node->op_name());
    for (const char* attr : {cuda::kInputActivation, "activation", "gradient"}) {
      if (!node->has_attr(attr) || node->attr<std::string>(attr).empty()) continue;
      found.push_back(StrCat(node->attr<std::string>(attr), " in ", node->op_name()));
    }
  }
  return found;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0;
}

// A graph of placeholders and of results, which are nodes with the names "result_0", "result_1" and so on.
class TestGraph {
 public:
  explicit TestGraph(DType dtype = DType::kFloat32) : dtype_(dtype) {
    RunOnGpu(Graph(), {}, {});  // registers the backend
  }

  Graph& graph() { return graph_; }
  Output Input(const Shape& shape) {
    inputs_.push_back(ops::Placeholder(graph_, dtype_, shape, StrCat("input_", inputs_.size())));
    values_.push_back(SomeValues(dtype_, shape, static_cast<int>(values_.size())));
    return inputs_.back();
  }
  void AddResult(const Output& value) { ops::Identity(value, StrCat("result_", results_++)); }
  // Adds the value and its gradients by all inputs.
  void AddResultAndGradients(const Output& value) {
    AddResult(value);
    for (const Gradient& gradient : Gradients({ops::Mul(value, value)}, inputs_)) AddResult(gradient.values);
  }
  // Runs a graph that has been made from this one.
  std::vector<Tensor> Run(const Graph& graph, bool on_gpu) const {
    std::vector<Output> fetches;
    for (int i = 0; i < results_; ++i) fetches.push_back(graph.FindNode(StrCat("result_", i))->output(0));
    std::vector<std::pair<Output, Tensor>> feeds;
    for (size_t i = 0; i < values_.size(); ++i) {
      feeds.emplace_back(graph.FindNode(StrCat("input_", i))->output(0), values_[i]);
    }
    return on_gpu ? RunOnGpu(graph, fetches, feeds) : Interpreter().Run(fetches, feeds);
  }
  std::unique_ptr<Graph> Move() const { return cuda::MoveActivations(CopyWithout(graph_, {}), "GPU"); }
  std::unique_ptr<Graph> Improve() const { return cuda::CudaBackend::Get().Improve(CopyWithout(graph_, {})); }
  // Expects that the graph computes the same after the pass.
  void ExpectSameBits() const {
    const std::unique_ptr<Graph> moved = Move();
    const std::vector<Tensor> expected = Run(graph_, true), actual = Run(*moved, true);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(SameBits(actual[i], expected[i])) << i << ": " << actual[i].ToString() << expected[i].ToString();
    }
  }

 private:
  const DType dtype_;
  Graph graph_;
  std::vector<Output> inputs_;
  std::vector<Tensor> values_;
  int results_ = 0;
};

Output Activate(const std::string& op, const Output& x) { return x.node->graph().Op(op).Input(x).Finish1(); }

// Like the layers of guide-004: pointwise convolutions, with a depthwise convolution or a pool behind each activation.
Output GuideLayers(TestGraph& g, const std::string& activation) {
  const auto pointwise = [&](const Output& x, int64_t from, int64_t to) {
    return Activate(activation, ops::BiasAdd(ops::Conv2D(x, g.Input({1, 1, from, to})), g.Input({to})));
  };
  Output x = pointwise(g.Input({2, 6, 8, 3}), 3, 8);
  x = ops::DepthwiseConv2dNative(x, g.Input({3, 3, 8, 1}), {.padding = "SAME"});
  x = ops::MaxPool(pointwise(x, 8, 6), {.size = {2, 2}, .strides = {2, 2}});
  x = ops::DepthwiseConv2dNative(x, g.Input({3, 3, 6, 1}), {.padding = "SAME"});
  return ops::Conv2D(x, g.Input({1, 1, 6, 2}));
}

TEST(MoveActivationsTest, NoKernelOfTheGuidesNetworkOnlyActivates) {
  TestGraph g;
  g.AddResultAndGradients(GuideLayers(g, "Selu"));
  const std::unique_ptr<Graph> improved = g.Improve();
  EXPECT_THAT(ActivationsIn(*improved),
              UnorderedElementsAre("Selu in DepthwiseConv2dNative", "Selu in DepthwiseConv2dNativeBackpropFilter",
                                   "Selu in _FusedDepthwiseConv2dNativeBackpropInput",
                                   "SeluGrad in _FusedDepthwiseConv2dNativeBackpropInput", "Selu in _MaxPoolWithPlaces",
                                   "SeluGrad in _FusedDepthwiseConv2dNativeBackpropInput"));
  // The gradients are up to a million times as large as their inputs, so rounding is measured by the largest element.
  const std::vector<Tensor> expected = g.Run(g.graph(), false), actual = g.Run(*improved, true);
  for (size_t k = 0; k < expected.size(); ++k) {
    ASSERT_EQ(actual[k].shape(), expected[k].shape());
    double largest = 0;
    for (int64_t i = 0; i < expected[k].num_elements(); ++i) {
      largest = std::max(largest, std::abs(ValueAt(expected[k], i)));
    }
    for (int64_t i = 0; i < expected[k].num_elements(); ++i) {
      ASSERT_NEAR(ValueAt(actual[k], i), ValueAt(expected[k], i), 4e-6 * largest) << k << " " << i;
    }
  }
}

TEST(MoveActivationsTest, AFusedProductKeepsAnActivationThatItEndsIn) {
  TestGraph g;
  g.AddResult(GuideLayers(g, "Relu"));
  EXPECT_THAT(ActivationsIn(*g.Improve()), ElementsAre("Relu in _FusedConv2D", "Relu in _FusedConv2D"));
}

struct DepthwiseCase {
  const char* label;
  Shape filter;
  ops::ConvolutionOptions options;
};

TEST(MoveActivationsTest, DepthwiseConvolutionsComputeTheSameBits) {
  const DepthwiseCase cases[] = {
      {"packs", {3, 3, 8, 1}, {.padding = "SAME"}},
      {"elements", {3, 3, 5, 1}, {.padding = "SAME"}},
      {"strides", {3, 3, 4, 1}, {.strides = {2, 2}, .padding = "SAME"}},
      {"dilations", {3, 3, 4, 1}, {.dilations = {2, 2}, .padding = "SAME"}},
      {"larger", {2, 5, 4, 1}, {.padding = "SAME"}},
      {"several", {3, 3, 2, 4}, {.padding = "VALID"}},
      {"several elements", {3, 2, 2, 3}, {.strides = {1, 2}, .padding = "SAME"}},
  };
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16}) {
    for (const std::string& activation : ActivationOps()) {
      for (const DepthwiseCase& c : cases) {
        SCOPED_TRACE(StrCat(c.label, " ", activation, " ", dtype));
        TestGraph g(dtype);
        const int64_t channels = c.filter.dim(2);
        // Not a bias: the operand of the activation comes from another kernel.
        const Output x = ops::Conv2D(g.Input({2, 7, 6, 3}), g.Input({1, 1, 3, channels}));
        g.AddResultAndGradients(ops::DepthwiseConv2dNative(Activate(activation, x), g.Input(c.filter), c.options));
        g.ExpectSameBits();
      }
    }
  }
}

TEST(MoveActivationsTest, PoolsComputeTheSameBits) {
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16}) {
    for (const std::string& activation : ActivationOps()) {
      for (const bool is_max : {false, true}) {
        SCOPED_TRACE(StrCat(is_max ? "largest" : "mean", " ", activation, " ", dtype));
        TestGraph g(dtype);
        const Output x = Activate(activation, ops::Conv2D(g.Input({2, 7, 6, 3}), g.Input({1, 1, 3, 5})));
        const ops::PoolOptions options = {.size = {3, 2}, .strides = {2, 2}, .padding = "SAME"};
        g.AddResult(is_max ? ops::MaxPool(x, options) : ops::AvgPool(x, options));
        EXPECT_THAT(ActivationsIn(*g.Move()), ElementsAre(StrCat(activation, " in ", is_max ? "MaxPool" : "AvgPool")));
        g.ExpectSameBits();
        TestGraph trained(dtype);
        const Output y = Activate(activation, ops::Conv2D(trained.Input({2, 7, 6, 3}), trained.Input({1, 1, 3, 5})));
        trained.AddResultAndGradients(is_max ? ops::MaxPool(y, options) : ops::AvgPool(y, options));
        trained.ExpectSameBits();
      }
    }
  }
}

TEST(MoveActivationsTest, GradientsAreWrittenByTheGradientsOfAveragePools) {
  TestGraph g;
  const Output x = ops::Relu(ops::Conv2D(g.Input({2, 7, 6, 3}), g.Input({1, 1, 3, 5})));
  g.AddResultAndGradients(ops::AvgPool(x, {.size = {2, 2}, .strides = {2, 2}}));
  EXPECT_THAT(ActivationsIn(*g.Move()),
              UnorderedElementsAre("Relu in AvgPool", "Relu in _FusedAvgPoolGrad", "ReluGrad in _FusedAvgPoolGrad"));
}

// A max pool of an activation whose gradient comes from a product, as behind the last pool of guide 004.
Output PoolBeforeProduct(TestGraph& g, const std::string& activation, const ops::PoolOptions& options) {
  const Output x = Activate(activation, ops::Conv2D(g.Input({2, 7, 6, 3}), g.Input({1, 1, 3, 5})));
  const Output pooled = ops::MaxPool(x, options);
  const int64_t columns = pooled.shape().num_elements() / 2;
  return ops::MatMul(ops::Reshape(pooled, {2, columns}), g.Input({columns, 3}));
}

TEST(MoveActivationsTest, GradientsAreReadByTheGradientsOfMaxPools) {
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16}) {
    for (const std::string& activation : ActivationOps()) {
      for (const int64_t stride : {1, 2}) {
        SCOPED_TRACE(StrCat(activation, " ", dtype, " ", stride));
        TestGraph g(dtype);
        g.AddResultAndGradients(
            PoolBeforeProduct(g, activation, {.size = {2, 2}, .strides = {stride, stride}, .padding = "SAME"}));
        const std::unique_ptr<Graph> placed = FuseImageGradients(CopyWithout(g.graph(), {}), "GPU");
        const std::unique_ptr<Graph> moved = cuda::MoveActivations(CopyWithout(*placed, {}), "GPU");
        std::vector<std::string> in = {StrCat(activation, " in _MaxPoolWithPlaces")};
        const std::string gradient = StrCat(activation, "Grad");
        if (OpRegistry::Global().Get(gradient).activation_gradient()) {  // it needs no operand of the activation
          in.push_back(StrCat(gradient, " in _FusedMaxPoolGradAtPlaces"));
        }
        EXPECT_THAT(ActivationsIn(*moved), UnorderedElementsAreArray(in));
        const std::vector<Tensor> expected = g.Run(*placed, true), actual = g.Run(*moved, true);
        for (size_t i = 0; i < expected.size(); ++i) {
          EXPECT_TRUE(SameBits(actual[i], expected[i])) << i << ": " << actual[i].ToString() << expected[i].ToString();
        }
      }
    }
  }
}

// The same with the activation behind the pool. The pool's gradient then computes it again from the pool's result.
TEST(MoveActivationsTest, AnActivationBehindAMaxPoolIsComputedByThePoolsGradient) {
  TestGraph g;
  const Output pooled = ops::MaxPool(ops::Conv2D(g.Input({2, 6, 6, 3}), g.Input({1, 1, 3, 4})));
  const Output y = ops::Selu(pooled);
  const Output x = ops::DepthwiseConv2dNative(y, g.Input({3, 3, 4, 1}), {.padding = "SAME"});
  g.AddResult(x);
  const Output dy = ops::Reshape(ops::MatMul(g.Input({2, 5}), g.Input({5, 36})), {2, 3, 3, 4});
  const Output gradient = g.graph().Op("SeluGrad").Input(dy).Input(y).Finish1();
  g.AddResult(g.graph()
                  .Op("MaxPoolGrad")
                  .Input(pooled.node->input(0))
                  .Input(pooled)
                  .Input(gradient)
                  .Attrs(pooled.node->attrs())
                  .Finish1());
  const std::unique_ptr<Graph> placed = FuseImageGradients(CopyWithout(g.graph(), {}), "GPU");
  const std::unique_ptr<Graph> moved = cuda::MoveActivations(CopyWithout(*placed, {}), "GPU");
  EXPECT_THAT(ActivationsIn(*moved),
              UnorderedElementsAre("Selu in DepthwiseConv2dNative", "Selu in _FusedMaxPoolGradAtPlaces",
                                   "SeluGrad in _FusedMaxPoolGradAtPlaces"));
  const std::vector<Tensor> expected = g.Run(*placed, true), actual = g.Run(*moved, true);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(SameBits(actual[i], expected[i])) << i;
}

TEST(MoveActivationsTest, AGradientBeforeThatOfAMaxPoolStaysIfItIsReadElsewhereOrPartOfAChain) {
  const auto counts = [](bool is_read, bool is_chain) {
    TestGraph g;
    const Output pooled = ops::MaxPool(g.Input({2, 6, 6, 4}));
    const Output dy = ops::MaxPool(g.Input({2, 6, 6, 4}));
    const Output of_chain = is_chain ? ops::Square(dy) : dy;
    const Output gradient = g.graph().Op("SeluGrad").Input(of_chain).Input(pooled).Finish1();
    NodeBuilder builder = g.graph().Op("MaxPoolGrad");
    builder.Input(pooled.node->input(0)).Input(pooled).Input(gradient).Attrs(pooled.node->attrs());
    g.AddResult(builder.Finish1());
    if (is_read) g.AddResult(gradient);
    return ActivationsIn(*cuda::MoveActivations(FuseImageGradients(CopyWithout(g.graph(), {}), "GPU"), "GPU"));
  };
  EXPECT_THAT(counts(false, false), ElementsAre("SeluGrad in _FusedMaxPoolGradAtPlaces"));
  EXPECT_THAT(counts(true, false), ElementsAre("SeluGrad"));
  EXPECT_THAT(counts(false, true), ElementsAre("SeluGrad"));
}

// What the readers of an activation have to be, and what stays as it is.
TEST(MoveActivationsTest, AnActivationStaysIfAReaderCannotApplyIt) {
  const auto operand = [](TestGraph& g) { return ops::Conv2D(g.Input({2, 6, 6, 3}), g.Input({1, 1, 3, 4})); };
  const auto convolved = [](TestGraph& g, const Output& x) {
    return ops::DepthwiseConv2dNative(x, g.Input({3, 3, 4, 1}));
  };
  {
    TestGraph g;  // it is fetched
    const Output y = ops::Selu(operand(g));
    g.AddResult(convolved(g, y));
    g.AddResult(y);
    EXPECT_THAT(ActivationsIn(*g.Move()), ElementsAre("Selu"));
  }
  {
    TestGraph g;  // a product reads it
    const Output y = ops::Selu(operand(g));
    g.AddResult(convolved(g, y));
    g.AddResult(ops::MatMul(ops::Reshape(y, {-1, 4}), g.Input({4, 2})));
    EXPECT_THAT(ActivationsIn(*g.Move()), ElementsAre("Selu"));
  }
  {
    TestGraph g;  // a chain has it
    g.AddResult(convolved(g, ops::Selu(ops::Add(operand(g), 1.0f))));
    EXPECT_THAT(ActivationsIn(*g.Move()), ElementsAre("Selu"));
  }
  {
    TestGraph g;  // the filter is read, and not the image
    const Output filter = ops::Selu(ops::Reshape(ops::MatMul(g.Input({6, 2}), g.Input({2, 6})), {3, 3, 4, 1}));
    g.AddResult(ops::DepthwiseConv2dNative(operand(g), filter));
    EXPECT_THAT(ActivationsIn(*g.Move()), ElementsAre("Selu"));
  }
  {
    TestGraph g;  // nothing reads it
    ops::Selu(operand(g));
    g.AddResult(convolved(g, operand(g)));
    EXPECT_THAT(ActivationsIn(*g.Move()), ElementsAre("Selu"));
  }
}

TEST(MoveActivationsTest, AGradientStaysIfItsOperandIsReadElsewhere) {
  TestGraph g;
  const Output sizes = ops::ShapeOf(g.Input({2, 6, 6, 4}));
  const Output by_input = g.graph()
                              .Op("DepthwiseConv2dNativeBackpropInput")
                              .Input(sizes)
                              .Input(g.Input({3, 3, 4, 1}))
                              .Input(g.Input({2, 6, 6, 4}))
                              .Attr("strides", std::vector<int64_t>{1, 1, 1, 1})
                              .Attr("padding", "SAME")
                              .Finish1();
  const Output activated = g.Input({2, 6, 6, 4});
  g.AddResult(g.graph().Op("SeluGrad").Input(by_input).Input(activated).Finish1());
  EXPECT_THAT(ActivationsIn(*g.Move()), ElementsAre("SeluGrad in _FusedDepthwiseConv2dNativeBackpropInput"));
  g.ExpectSameBits();
  g.AddResult(by_input);
  EXPECT_THAT(ActivationsIn(*g.Move()), ElementsAre("SeluGrad"));
}

// Nodes that wait for an activation wait for its operand, and its readers for what it waited for.
TEST(MoveActivationsTest, ControlEdgesStay) {
  TestGraph g;
  Node* const before = g.graph().Op("NoOp").Name("before").Finish();
  const Output x = ops::Conv2D(g.Input({2, 6, 6, 3}), g.Input({1, 1, 3, 4}));
  const Output y = g.graph().Op("Selu").Input(x).Control(before).Finish1();
  g.graph().Op("NoOp").Name("after").Control(y.node).Finish();
  const Output pooled = ops::MaxPool(y);
  g.AddResult(pooled);
  const std::unique_ptr<Graph> moved = g.Move();
  EXPECT_THAT(ActivationsIn(*moved), ElementsAre("Selu in MaxPool"));
  EXPECT_THAT(moved->FindNode("after")->control_inputs(), ElementsAre(moved->FindNode(x.node->name())));
  EXPECT_THAT(moved->FindNode(pooled.node->name())->control_inputs(), ElementsAre(moved->FindNode("before")));
}

TEST(MoveActivationsTest, AGraphWithoutActivationsIsReturnedItself) {
  TestGraph g;
  g.AddResult(ops::MaxPool(g.Input({2, 6, 6, 3})));
  std::unique_ptr<Graph> copy = CopyWithout(g.graph(), {});
  const Graph* const before = copy.get();
  EXPECT_EQ(cuda::MoveActivations(std::move(copy), "GPU").get(), before);
}

}  // namespace
}  // namespace cohort::testing
