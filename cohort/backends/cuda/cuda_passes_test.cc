// The passes of the CUDA backend: which nodes they fuse, and that a fused graph computes the same on the fake driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cohort/backends/cuda/cuda_backend.h"
#include "cohort/backends/cuda/fake/compare.h"
#include "cohort/graph/copy_node.h"
#include "cohort/graph/gradients.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/convolution.h"
#include "cohort/ops/matmul.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/pooling.h"

namespace cohort::testing {
namespace {

using ::testing::Contains;
using ::testing::Not;

constexpr const char* kNames[] = {"images", "filter", "bias", "weights", "last_bias"};

// A small network, with the gradients by all but the images. The fetched values have names "result_...".
struct Network {
  Graph graph;
  std::vector<Tensor> values = {SomeValues(DType::kFloat32, {2, 6, 8, 2}, 1),
                                SomeValues(DType::kFloat32, {3, 3, 2, 4}, 2), SomeValues(DType::kFloat32, {4}, 3),
                                SomeValues(DType::kFloat32, {48, 5}, 4), SomeValues(DType::kFloat32, {5}, 5)};

  Network() {
    std::vector<Output> in;
    for (size_t i = 0; i < values.size(); ++i) {
      in.push_back(ops::Placeholder(graph, values[i].dtype(), values[i].shape(), kNames[i]));
    }
    Output y = ops::Selu(ops::BiasAdd(ops::Conv2D(in[0], in[1], {.padding = "SAME"}), in[2]));
    y = ops::Reshape(ops::MaxPool(y, {.size = {2, 2}, .strides = {2, 2}}), {2, 48});
    y = ops::Relu(ops::BiasAdd(ops::MatMul(y, in[3]), in[4]));
    std::vector<Output> results = {y};
    for (const Gradient& gradient : Gradients({y}, {in[1], in[2], in[3], in[4]})) results.push_back(gradient.values);
    for (size_t i = 0; i < results.size(); ++i) ops::Identity(results[i], StrCat("result_", i));
  }
};

// Fetches the results of a network by their names.
std::vector<Output> ResultsOf(const Graph& graph) {
  std::vector<Output> results;
  results.reserve(5);
  for (int i = 0; i < 5; ++i) results.push_back(graph.FindNode(StrCat("result_", i))->output(0));
  return results;
}
std::vector<std::pair<Output, Tensor>> FeedsOf(const Graph& graph, const std::vector<Tensor>& values) {
  std::vector<std::pair<Output, Tensor>> feeds;
  for (size_t i = 0; i < values.size(); ++i) feeds.emplace_back(graph.FindNode(kNames[i])->output(0), values[i]);
  return feeds;
}

TEST(CudaPassesTest, FusedGraphsComputeTheSame) {
  RunOnGpu(Graph(), {}, {});  // registers the backend
  const Network network;
  std::vector<std::string> all;
  std::unique_ptr<Graph> copy = CopyWithout(network.graph, {});
  const std::unique_ptr<Graph> fused = cuda::CudaBackend::Get().Improve(std::move(copy));
  for (const Node* node : fused->nodes()) all.push_back(node->op_name());
  for (const char* op : {"_FusedConv2D", "_FusedMatMul", "_FusedConv2DBackpropFilter", "_MaxPoolWithPlaces",
                         "_FusedMaxPoolGradAtPlaces"}) {
    EXPECT_THAT(all, Contains(std::string(op)));
  }
  for (const char* op : {"Conv2D", "MaxPool", "MaxPoolGrad", "Selu", "Relu", "BiasAdd"}) {
    EXPECT_THAT(all, Not(Contains(std::string(op))));
  }
  const auto expected = Interpreter().Run(ResultsOf(network.graph), FeedsOf(network.graph, network.values));
  const auto actual = RunOnGpu(*fused, ResultsOf(*fused), FeedsOf(*fused, network.values));
  for (size_t k = 0; k < expected.size(); ++k) {
    ASSERT_EQ(actual[k].shape(), expected[k].shape());
    for (int64_t i = 0; i < expected[k].num_elements(); ++i) {
      const double e = ValueAt(expected[k], i);
      ASSERT_NEAR(ValueAt(actual[k], i), e, 1e-4 * std::max(1.0, std::abs(e))) << k << " " << i;
    }
  }
}

}  // namespace
}  // namespace cohort::testing
