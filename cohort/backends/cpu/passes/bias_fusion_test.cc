#include "cohort/backends/cpu/passes/bias_fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "cohort/core/testing/throws.h"
#include "cohort/graph/gradients.h"
#include "cohort/graph/testing/activation_ops.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/convolution.h"
#include "cohort/ops/math.h"
#include "cohort/ops/nn.h"
#include "cohort/runtime/testing/device_kinds.h"

namespace cohort {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Values of both signs, with sums that round.
Tensor Values(const Shape& shape, int seed) {
  Tensor tensor(DType::kFloat32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data<float>()[i] = std::sin(static_cast<float>(i * 7 + seed));
  }
  return tensor;
}

// "activation(name)" of each fused product after fusion.
std::vector<std::string> Fused(std::unique_ptr<Graph> graph) {
  std::vector<std::string> found;
  const std::unique_ptr<Graph> result = FuseBiases(std::move(graph), "CPU");
  for (const Node* node : result->nodes()) {
    if (node->op_name() == "_FusedMatMul")
      found.push_back(node->attr<std::string>("activation") + "(" + node->name() + ")");
  }
  return found;
}

struct Layer {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  Output x, w, b, product;
  explicit Layer(const Shape& bias = Shape{3}) {
    x = ops::Placeholder(*graph, DType::kFloat32, Shape{-1, 4}, "x");
    w = ops::Placeholder(*graph, DType::kFloat32, Shape{4, 3}, "w");
    b = ops::Placeholder(*graph, DType::kFloat32, bias, "b");
    product = ops::MatMul(x, w);
  }
  void Fetch(Output value) { graph->Op("_Retval").Input(value).Attr("index", 0).Finish(); }
};

TEST(BiasFusionTest, BiasAndActivationGoIntoTheProduct) {
  Layer layer;
  layer.Fetch(ops::Tanh(ops::BiasAdd(layer.product, layer.b), "out"));
  EXPECT_THAT(Fused(std::move(layer.graph)), ElementsAre("Tanh(out)"));
  Layer sum;
  sum.Fetch(ops::Neg(ops::BiasAdd(sum.product, sum.b, "NHWC", "sum")));
  EXPECT_THAT(Fused(std::move(sum.graph)), ElementsAre("(sum)"));
}

TEST(BiasFusionTest, AddOfAVectorThatIsKnownToFitIsABias) {
  Layer right;
  right.Fetch(ops::Relu(right.product + right.b, "out"));
  EXPECT_THAT(Fused(std::move(right.graph)), ElementsAre("Relu(out)"));
  Layer left;
  left.Fetch(ops::Relu(left.b + left.product, "out"));
  EXPECT_THAT(Fused(std::move(left.graph)), ElementsAre("Relu(out)"));
  for (const Shape& other : {Shape{-1}, Shape{}, Shape{1}, Shape{2, 3}, Shape::UnknownRank()}) {
    Layer layer(other);
    layer.Fetch(ops::Relu(layer.product + layer.b));
    EXPECT_THAT(Fused(std::move(layer.graph)), IsEmpty()) << other;
  }
}

TEST(BiasFusionTest, ValuesThatOthersReadStay) {
  Layer product;
  product.Fetch(product.product);
  product.Fetch(ops::Relu(ops::BiasAdd(product.product, product.b)));
  EXPECT_THAT(Fused(std::move(product.graph)), IsEmpty());
  Layer sum;  // the activation alone stays outside
  const Output biased = ops::BiasAdd(sum.product, sum.b, "NHWC", "sum");
  sum.Fetch(ops::Relu(biased));
  sum.Fetch(ops::Neg(biased));
  EXPECT_THAT(Fused(std::move(sum.graph)), ElementsAre("(sum)"));
  Layer twice;
  const Output read_twice = ops::BiasAdd(twice.product, twice.b, "NHWC", "sum");
  twice.Fetch(ops::Relu(read_twice) * read_twice);
  EXPECT_THAT(Fused(std::move(twice.graph)), ElementsAre("(sum)"));
  Layer control;
  Node* after = control.graph->Op("NoOp").Control(control.product.node).Finish();
  control.Fetch(ops::BiasAdd(control.product, control.b));
  EXPECT_EQ(after->control_inputs().size(), 1u);
  EXPECT_THAT(Fused(std::move(control.graph)), IsEmpty());
  Layer integers;
  const Output n = ops::MatMul(ops::Cast(integers.x, DType::kInt32), ops::Cast(integers.w, DType::kInt32));
  integers.Fetch(n + ops::Cast(integers.b, DType::kInt32));
  EXPECT_THAT(Fused(std::move(integers.graph)), IsEmpty());
}

TEST(BiasFusionTest, ControlInputsAreKeptAndOtherDevicesLeftAlone) {
  Layer layer;
  Node* before = layer.graph->Op("NoOp").Name("before").Finish();
  const Output sum = ops::BiasAdd(layer.product, layer.b);
  sum.node->AddControlInput(before);
  layer.Fetch(ops::Relu(sum, "out"));
  const auto result = FuseBiases(std::move(layer.graph), "CPU");
  ASSERT_EQ(result->FindNode("out")->control_inputs().size(), 1u);
  EXPECT_EQ(result->FindNode("out")->control_inputs()[0]->name(), "before");
  Layer other;
  other.Fetch(ops::BiasAdd(other.product, other.b));
  const Graph* same = other.graph.get();
  EXPECT_EQ(FuseBiases(std::move(other.graph), "NO_SUCH_DEVICE").get(), same);
}

TEST(BiasFusionTest, ConvolutionsTakeTheirBiasAlongChannels) {
  auto graph = std::make_unique<Graph>();
  const auto image = [&](const Shape& shape) { return ops::Placeholder(*graph, DType::kFloat32, shape); };
  const Output x = image({-1, 5, 5, 3});
  const auto fetch = [&](Output value) { graph->Op("_Retval").Input(value).Attr("index", 0).Finish(); };
  fetch(ops::Selu(ops::BiasAdd(ops::Conv2D(x, image({2, 2, 3, 4})), image({4})), "full"));
  fetch(ops::BiasAdd(ops::DepthwiseConv2dNative(x, image({2, 2, 3, 1})), image({3}), "NHWC", "depthwise"));
  fetch(ops::Relu(ops::Conv2D(x, image({2, 2, 3, 4})) + image({4}), "sum"));
  fetch(ops::BiasAdd(ops::Conv2D(x, image({2, 2, 3, 4})), image({4}), "NCHW", "rows"));
  const auto result = FuseBiases(std::move(graph), "CPU");
  std::vector<std::string> found;
  for (const Node* node : result->nodes()) {
    if (node->has_attr("activation")) {
      found.push_back(node->op_name() + " " + node->attr<std::string>("activation") + " " + node->name());
    }
  }
  EXPECT_THAT(found,
              ElementsAre("_FusedConv2D Selu full", "_FusedDepthwiseConv2dNative  depthwise", "_FusedConv2D Relu sum"));
}

class FusedProductTest : public testing::DeviceKindTest {};
INSTANTIATE_TEST_SUITE_P(Devices, FusedProductTest, testing::AllDeviceKinds(), testing::DeviceKindName);

// Fetching the values in between keeps them apart.
TEST_P(FusedProductTest, GivesTheValuesOfTheKernelsOneByOne) {
  std::vector<std::string> activations = testing::ActivationOps();
  activations.emplace_back();  // none
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kFloat64}) {
    // A card rounds the sum of the product and the bias once; the kernels one by one round twice.
    const double tolerance = dtype == DType::kBfloat16 && GetParam() == std::string("GPU") ? 2e-2 : 1e-6;
    for (const std::string& name : activations) {
      testing::GraphOnDevice on(device());
      Graph& g = on.graph;
      const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1, -1});
      const Output w = ops::Placeholder(g, DType::kFloat32, Shape{-1, -1});
      const Output b = ops::Placeholder(g, DType::kFloat32, Shape{-1});
      const Output product = ops::MatMul(ops::Cast(x, dtype), ops::Cast(w, dtype));
      const Output sum = ops::BiasAdd(product, ops::Cast(b, dtype));
      const Output y = ops::Cast(name.empty() ? sum : g.Op(name).Input(sum).Finish1(), DType::kFloat64);
      Session session(g, "", config());
      for (const auto& [m, n, k] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
               {0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {1, 70, 33}, {65, 1, 40}, {17, 19, 23}, {1100, 300, 8}}) {
        if (m > 1000 && dtype == DType::kFloat64) continue;
        Tensor rows = Values(Shape{m, k}, 1);
        if (rows.num_elements() > 5) rows.data<float>()[5] = std::nanf("");
        const FeedList feeds = {{x, rows}, {w, Values(Shape{k, n}, 2)}, {b, Values(Shape{n}, 3)}};
        const Tensor fused = session.Run(feeds, {y})[0];
        const Tensor apart = session.Run(feeds, {y, product, sum})[0];
        ASSERT_EQ(fused.shape(), (Shape{m, n}));
        for (int64_t i = 0; i < m * n; ++i) {
          const double got = fused.data<double>()[i];
          const double expected = apart.data<double>()[i];
          if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(got)) << name << " at " << i;
          } else {
            ASSERT_NEAR(got, expected, tolerance * (1 + std::abs(expected))) << dtype << " " << name << " at " << i;
          }
        }
      }
    }
  }
}

TEST_P(FusedProductTest, GradientsAreTheSame) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape{-1, 6});
  Output value = x;
  std::vector<Output> weights;
  std::vector<Output> between;
  for (const auto activation : {ops::Relu, ops::Elu, ops::Sigmoid, ops::Tanh}) {
    weights.push_back(ops::Const(g, Values(Shape{6, 6}, static_cast<int>(weights.size()))) + 0.0f);
    weights.push_back(ops::Const(g, Values(Shape{6}, static_cast<int>(weights.size()))) + 0.0f);
    between.push_back(ops::MatMul(value, weights[weights.size() - 2]));
    between.push_back(ops::BiasAdd(between.back(), weights.back()));
    value = activation(between.back(), "activation");
  }
  std::vector<Output> gradients;
  for (const Gradient& gradient : Gradients({ops::Sum(value * value)}, weights)) gradients.push_back(gradient.values);
  std::vector<Output> all = gradients;
  all.insert(all.end(), between.begin(), between.end());
  Session session(g, "", config());
  const FeedList feeds = {{x, Values(Shape{5, 6}, 9)}};
  const std::vector<Tensor> fused = session.Run(feeds, gradients);
  const std::vector<Tensor> apart = session.Run(feeds, all);
  for (size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_EQ(fused[i].ToVector<float>(), apart[i].ToVector<float>()) << i;
    EXPECT_NE(fused[i].ToVector<float>()[0], 0.0f);
  }
}

TEST_P(FusedProductTest, ShapesThatDoNotFitAreNamed) {
  testing::GraphOnDevice on(device());
  Graph& g = on.graph;
  const Output x = ops::Placeholder(g, DType::kFloat32, Shape::UnknownRank());
  const Output w = ops::Placeholder(g, DType::kFloat32, Shape::UnknownRank());
  const Output b = ops::Placeholder(g, DType::kFloat32, Shape::UnknownRank());
  const Output y = ops::Relu(ops::BiasAdd(ops::MatMul(x, w), b), "out");
  Session session(g, "", config());
  const auto message = [&](const Shape& sx, const Shape& sw, const Shape& sb) {
    return MessageOf<InvalidArgumentError>([&] {
      session.Run({{x, Values(sx, 1)}, {w, Values(sw, 1)}, {b, Values(sb, 1)}}, {y});
    });
  };
  EXPECT_THAT(message({2, 3}, {4, 5}, {5}), HasSubstr("Matrix size-incompatible"));
  EXPECT_THAT(message({2, 3}, {3, 5}, {4}), HasSubstr("bias of shape [5]"));
  EXPECT_THAT(message({2, 3}, {3, 5}, {1, 5}), HasSubstr("got [1,5]"));
  // On the TEST device the shape rule sees it first.
  EXPECT_THAT(message({2, 3, 1}, {3, 5}, {5}), AnyOf(HasSubstr("two matrices"), HasSubstr("must be rank 2")));
  EXPECT_THAT(message({2, 3}, {4, 5}, {5}), HasSubstr("node 'out'"));
}

}  // namespace
}  // namespace cohort
