// Cases of activations, softmax and its losses, and other small parts of networks.
#include <cmath>
#include <string>
#include <utility>

#include "cohort/graph/gradients.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/nn.h"
#include "cohort/ops/normalization.h"
#include "cohort/ops/softmax.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;

OpCase::Build One(const std::string& op) {
  return [op](Graph& graph, const Outputs& in) { return Outputs{graph.Op(op).Input(in[0]).Finish1()}; };
}
OpCase::Build Two(const std::string& op) {
  return [op](Graph& graph, const Outputs& in) { return Outputs{graph.Op(op).Input(in[0]).Input(in[1]).Finish1()}; };
}

// The points are not near the corners at 0 and 6, where a difference is the mean of two slopes.
void AddActivation(std::vector<OpCase>& cases, const std::string& op, const std::vector<int>& grad_inputs) {
  const Tensor points = Scatter({3, 4}, -3.3, 7.4);
  cases.push_back({op, "matrix", {points}, One(op), {0}});
  cases.push_back({op, "scalar", {Tensor::Scalar(-0.7)}, One(op), {0}});
  cases.push_back({op, "empty", {Tensor(DType::kFloat64, {0, 2})}, One(op), {0}});
  cases.push_back({op, "float32", {AsType(points, DType::kFloat32)}, One(op)});
  cases.push_back({op, "bfloat16", {AsType(points, DType::kBfloat16)}, One(op)});
  const std::string grad = op + "Grad";
  // The numbers are in (-1, 1), like outputs of Elu, Selu, Sigmoid and Tanh.
  const Tensor second = Scatter({2, 3}, -0.93, 0.88, 3);
  cases.push_back({grad, "matrix", {Scatter({2, 3}, -2, 2), second}, Two(grad), grad_inputs});
  cases.push_back({grad,
                   "float32",
                   {AsType(Scatter({7}, -2, 2), DType::kFloat32), AsType(Scatter({7}, -0.9, 0.8), DType::kFloat32)},
                   Two(grad)});
  cases.push_back({grad,
                   "bfloat16",
                   {AsType(Scatter({7}, -2, 2), DType::kBfloat16), AsType(Scatter({7}, -0.9, 0.8), DType::kBfloat16)},
                   Two(grad)});
}

void AddActivationCases(std::vector<OpCase>& cases) {
  AddActivation(cases, "Relu", {0});
  AddActivation(cases, "Relu6", {0});
  AddActivation(cases, "Elu", {0, 1});
  AddActivation(cases, "Selu", {0, 1});
  AddActivation(cases, "Softplus", {0, 1});
  AddActivation(cases, "Sigmoid", {0, 1});
  AddActivation(cases, "Tanh", {0, 1});
  const OpCase::Build leaky = [](Graph&, const Outputs& in) { return Outputs{ops::LeakyRelu(in[0], 0.3f)}; };
  cases.push_back({"LeakyRelu", "matrix", {Scatter({3, 4}, -3, 3)}, leaky, {0}});
  cases.push_back({"LeakyRelu", "float32", {AsType(Scatter({9}, -3, 3), DType::kFloat32)}, leaky});
  const OpCase::Build leaky_grad = [](Graph& graph, const Outputs& in) {
    return Outputs{graph.Op("LeakyReluGrad").Input(in[0]).Input(in[1]).Attr("alpha", 0.3f).Finish1()};
  };
  cases.push_back({"LeakyReluGrad", "matrix", {Scatter({3, 2}, -3, 3), Scatter({3, 2}, -1, 1, 4)}, leaky_grad, {0}});
}

void AddSoftmaxCases(std::vector<OpCase>& cases) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    cases.push_back({op, "matrix", {Scatter({3, 4}, -2, 3)}, One(op), {0}});
    cases.push_back({op, "vector", {Scatter({5}, -2, 3)}, One(op), {0}});
    cases.push_back({op, "rank3", {Scatter({2, 2, 3}, -2, 3)}, One(op), {0}});
    cases.push_back({op, "many_classes", {AsType(Scatter({2, 700}, -9, 9), DType::kFloat32)}, One(op)});
    cases.push_back({op, "bfloat16", {AsType(Scatter({2, 5}, -2, 3), DType::kBfloat16)}, One(op)});
    cases.push_back({op, "no_rows", {Ramp({0, 4})}, One(op), {0}});
  }
  const OpCase::Build loss = [](Graph&, const Outputs& in) {
    return Outputs{ops::SoftmaxCrossEntropyWithLogits({.labels = in[1], .logits = in[0]})};
  };
  // Returns both outputs, so that the gradient of backprop (a second derivative) is checked, too.
  const OpCase::Build both = [](Graph&, const Outputs& in) {
    const Output result = ops::SoftmaxCrossEntropyWithLogits({.labels = in[1], .logits = in[0]});
    return Outputs{result, result.node->output(1)};
  };
  const Tensor logits = Scatter({3, 4}, -2, 3);
  const Tensor labels =
      Tensor::FromValues(std::vector<double>{0.1, 0.2, 0.3, 0.4, 1, 0, 0, 0, 0.25, 0.25, 0.25, 0.25}, Shape{3, 4});
  cases.push_back({"SoftmaxCrossEntropyWithLogits", "loss", {logits, labels}, loss, {0, 1}});
  cases.push_back({"SoftmaxCrossEntropyWithLogits", "backprop", {logits, labels}, both, {0}});
  cases.push_back({"SoftmaxCrossEntropyWithLogits",
                   "float32",
                   {AsType(logits, DType::kFloat32), AsType(labels, DType::kFloat32)},
                   both});
  cases.push_back({"SoftmaxCrossEntropyWithLogits", "no_rows", {Ramp({0, 4}), Ramp({0, 4})}, both, {0}});
  const OpCase::Build sparse = [](Graph&, const Outputs& in) {
    const Output result = ops::SparseSoftmaxCrossEntropyWithLogits({.labels = in[1], .logits = in[0]});
    return Outputs{result, result.node->output(1)};
  };
  const Tensor classes = Tensor::Vector(std::vector<int32_t>{3, 0, 2});
  cases.push_back({"SparseSoftmaxCrossEntropyWithLogits", "int32", {logits, classes}, sparse, {0}});
  cases.push_back({"SparseSoftmaxCrossEntropyWithLogits",
                   "int64",
                   {AsType(logits, DType::kFloat32), Tensor::Vector(std::vector<int64_t>{1, 1, 0})},
                   sparse});
  cases.push_back({"SparseSoftmaxCrossEntropyWithLogits",
                   "no_rows",
                   {Ramp({0, 4}), Tensor::Vector(std::vector<int32_t>{})},
                   sparse,
                   {0}});
  // This composite is listed under the op that gives it its gradient.
  cases.push_back(
      {"Softplus",
       "sigmoid_cross_entropy",
       {Scatter({6}, -3, 3), Ramp({6}, 0, 1)},
       Binary([](Output a, Output b) { return ops::SigmoidCrossEntropyWithLogits({.labels = b, .logits = a}); }),
       {0, 1}});
}

void AddBiasCases(std::vector<OpCase>& cases) {
  const auto bias_add = [](const char* format) -> OpCase::Build {
    return [format](Graph&, const Outputs& in) { return Outputs{ops::BiasAdd(in[0], in[1], format)}; };
  };
  const auto bias_grad = [](const char* format) -> OpCase::Build {
    return [format](Graph& graph, const Outputs& in) {
      return Outputs{graph.Op("BiasAddGrad").Input(in[0]).Attr("data_format", format).Finish1()};
    };
  };
  cases.push_back({"BiasAdd", "matrix", {Ramp({3, 2}), Ramp({2})}, bias_add("NHWC"), {0, 1}});
  cases.push_back({"BiasAdd", "nhwc", {Ramp({2, 2, 2, 3}), Ramp({3})}, bias_add("NHWC"), {0, 1}});
  cases.push_back({"BiasAdd", "nchw", {Ramp({2, 3, 2, 2}), Ramp({3})}, bias_add("NCHW"), {0, 1}});
  cases.push_back({"BiasAdd",
                   "float32",
                   {AsType(Ramp({4, 9}), DType::kFloat32), AsType(Ramp({9}), DType::kFloat32)},
                   bias_add("NHWC")});
  cases.push_back({"BiasAdd", "no_rows", {Ramp({0, 2}), Ramp({2})}, bias_add("NHWC"), {0, 1}});
  cases.push_back({"BiasAddGrad", "no_rows", {Ramp({0, 2})}, bias_grad("NHWC"), {0}});
  cases.push_back({"BiasAddGrad", "matrix", {Ramp({3, 2})}, bias_grad("NHWC"), {0}});
  cases.push_back({"BiasAddGrad", "nchw", {Ramp({2, 3, 2, 2})}, bias_grad("NCHW"), {0}});
  cases.push_back({"BiasAddGrad", "long", {AsType(Scatter({1000, 5}), DType::kFloat32)}, bias_grad("NHWC")});
}

// Returns the mean of each row of x (float64), and the reciprocal of its deviation.
std::pair<Tensor, Tensor> RowStatistics(const Tensor& x, double epsilon) {
  const int64_t columns = x.shape().dim(x.shape().rank() - 1);
  const Shape rows = x.shape().Sub(0, x.shape().rank() - 1);
  Tensor mean = Tensor::Zeros(DType::kFloat64, rows), inverse = Tensor::Zeros(DType::kFloat64, rows);
  for (int64_t row = 0; row < rows.num_elements(); ++row) {
    const double* values = x.data<double>() + row * columns;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < columns; ++i) sum += values[i];
    const double mean_of_row = sum / static_cast<double>(columns);
    for (int64_t i = 0; i < columns; ++i) squares += (values[i] - mean_of_row) * (values[i] - mean_of_row);
    mean.data<double>()[row] = mean_of_row;
    inverse.data<double>()[row] = 1 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
  }
  return {mean, inverse};
}

// Adds cases of LayerNorm and LayerNormGrad for an x of `shape`. TensorFlow has no such ops.
void AddLayerNorm(std::vector<OpCase>& cases, const char* label, const Shape& shape, DType dtype) {
  constexpr float kEpsilon = 0.125f;
  const bool checked = dtype == DType::kFloat64;
  const DType wide = checked ? DType::kFloat64 : DType::kFloat32;
  const Shape channels{shape.dim(shape.rank() - 1)};
  const Tensor x = Scatter(shape, -1, 3);
  const Tensor scale = AsType(Scatter(channels, 0.5, 1.5), wide), offset = AsType(Scatter(channels, -1, 1, 2), wide);
  const auto [mean, inverse] = RowStatistics(x, kEpsilon);
  const auto forward = [=](Graph&, const Outputs& in) {
    const Output y = ops::LayerNorm(in[0], in[1], in[2], kEpsilon);
    return Outputs{y, y.node->output(1), y.node->output(2)};
  };
  const auto y_alone = [=](Graph& graph, const Outputs& in) { return Outputs{forward(graph, in)[0]}; };
  const auto backward = [=](Graph& graph, const Outputs& in) {
    NodeBuilder builder = graph.Op("LayerNormGrad");
    for (const Output& input : in) builder.Input(input);
    Node* node = builder.Attr("epsilon", kEpsilon).Finish();
    return Outputs{node->output(0), node->output(1), node->output(2)};
  };
  const auto add = [&](OpCase op_case, const std::vector<int>& differentiable) {
    if (checked) op_case.differentiable = differentiable;
    op_case.compare_values = false;
    cases.push_back(std::move(op_case));
  };
  const std::string name = label;
  add({"LayerNorm", name, {AsType(x, dtype), scale, offset}, y_alone}, {0, 1, 2});
  add({"LayerNorm", name + "_statistics", {AsType(x, dtype), scale, offset}, forward}, {});
  // The statistics are those of x, although they are inputs here. So only dy and scale may change alone.
  add({"LayerNormGrad",
       name,
       {AsType(Scatter(shape, -1, 1, 4), dtype), AsType(x, dtype), scale, AsType(mean, wide), AsType(inverse, wide)},
       backward},
      {0, 2});
}

void AddLayerNormCases(std::vector<OpCase>& cases) {
  AddLayerNorm(cases, "matrix", {3, 5}, DType::kFloat64);
  AddLayerNorm(cases, "images", {2, 2, 3, 4}, DType::kFloat64);
  AddLayerNorm(cases, "vector", {19}, DType::kFloat64);
  AddLayerNorm(cases, "one_column", {4, 1}, DType::kFloat64);
  AddLayerNorm(cases, "no_rows", {0, 4}, DType::kFloat64);
  AddLayerNorm(cases, "no_columns", {3, 0}, DType::kFloat64);
  AddLayerNorm(cases, "odd", {37, 67}, DType::kFloat32);
  AddLayerNorm(cases, "many_rows", {3001, 5}, DType::kFloat32);
  AddLayerNorm(cases, "long_rows", {3, 5003}, DType::kFloat32);
  AddLayerNorm(cases, "bfloat16", {9, 33}, DType::kBfloat16);
  AddLayerNorm(cases, "bfloat16_long_rows", {2, 1100}, DType::kBfloat16);
}

}  // namespace

void AddNnCases(std::vector<OpCase>& cases) {
  AddActivationCases(cases);
  AddSoftmaxCases(cases);
  AddBiasCases(cases);
  AddLayerNormCases(cases);
  const OpCase::Build l2 = [](Graph&, const Outputs& in) { return Outputs{ops::L2Loss(in[0])}; };
  cases.push_back({"L2Loss", "matrix", {Ramp({3, 4})}, l2, {0}});
  cases.push_back({"L2Loss", "float32", {AsType(Ramp({700}), DType::kFloat32)}, l2});
  cases.push_back({"L2Loss", "scalar", {Tensor::Scalar(-0.7)}, l2, {0}});
  cases.push_back({"L2Loss", "empty", {Ramp({2, 0})}, l2, {0}});
  const OpCase::Build top2 = [](Graph&, const Outputs& in) { return Outputs{ops::InTopK(in[0], in[1], 2)}; };
  const Tensor predictions = AsType(Scatter({3, 5}), DType::kFloat32);
  cases.push_back({"InTopKV2", "int32", {predictions, Tensor::Vector(std::vector<int32_t>{0, 3, 9})}, top2});
  cases.push_back(
      {"InTopKV2", "no_rows", {AsType(Ramp({0, 5}), DType::kFloat32), Tensor::Vector(std::vector<int32_t>{})}, top2});
  cases.push_back({"InTopKV2", "int64", {predictions, Tensor::Vector(std::vector<int64_t>{4, 1, 2})}, top2});
}

}  // namespace cohort::testing
