// Cases of convolutions, pools and batch normalization. All are float32 or bfloat16, as the ops are. For ops that are
// linear in each operand, central differences are exact for any step, so their step is large. The points of pools have
// larger distances than the step.
#include <cstddef>
#include <string>
#include <utility>

#include "cohort/ops/convolution.h"
#include "cohort/ops/normalization.h"
#include "cohort/ops/pooling.h"
#include "tests/ops/op_cases.h"

namespace cohort::testing {
namespace {

using Outputs = std::vector<Output>;
using IntList = std::vector<int64_t>;

Tensor Floats(const Shape& shape, double low = -1.0, double high = 1.0, int seed = 1) {
  return AsType(Scatter(shape, low, high, seed), DType::kFloat32);
}

Tensor Sizes(const Shape& shape) {
  std::vector<int32_t> sizes;
  for (const int64_t dim : shape.dims()) sizes.push_back(static_cast<int32_t>(dim));
  return Tensor::Vector(sizes);
}

OpCase Checked(OpCase op_case, double step, double tolerance) {
  op_case.step = step;
  op_case.tolerance = tolerance;
  return op_case;
}

struct Convolution {
  const char* label;
  Shape input;
  Shape filter;
  Shape output;
  ops::ConvolutionOptions options;
};

OpCase::Build Convolve(const std::string& op, const ops::ConvolutionOptions& o) {
  return [op, o](Graph& graph, const Outputs& in) {
    NodeBuilder builder = graph.Op(op);
    for (const Output& input : in) builder.Input(input);
    builder.Attr("strides", IntList{1, o.strides[0], o.strides[1], 1}).Attr("padding", o.padding);
    builder.Attr("dilations", IntList{1, o.dilations[0], o.dilations[1], 1});
    if (o.padding == "EXPLICIT") {
      builder.Attr("explicit_paddings",
                   IntList{0, 0, o.paddings[0], o.paddings[1], o.paddings[2], o.paddings[3], 0, 0});
    }
    return Outputs{builder.Finish1()};
  };
}

void AddConvolution(std::vector<OpCase>& cases, const std::string& op, const Convolution& c) {
  const Tensor input = Floats(c.input), filter = Floats(c.filter, -1, 1, 2), gradient = Floats(c.output, -1, 1, 3);
  const std::string input_grad = op + "BackpropInput", filter_grad = op + "BackpropFilter";
  const auto add = [&](const std::string& name, const std::vector<Tensor>& inputs, const std::vector<int>& operands) {
    cases.push_back(Checked({name, c.label, inputs, Convolve(name, c.options), operands}, 0.25, 1e-4));
  };
  add(op, {input, filter}, {0, 1});
  add(input_grad, {Sizes(c.input), filter, gradient}, {1, 2});
  add(filter_grad, {input, Sizes(c.filter), gradient}, {0, 2});
}

void AddBfloat16(std::vector<OpCase>& cases, const std::string& op, const Convolution& c) {
  const auto half = [](const Tensor& value) { return AsType(AsFloat64(value), DType::kBfloat16); };
  const Tensor input = half(Floats(c.input)), filter = half(Floats(c.filter, -1, 1, 2));
  const Tensor gradient = half(Floats(c.output, -1, 1, 3));
  const std::string input_grad = op + "BackpropInput", filter_grad = op + "BackpropFilter";
  cases.push_back({op, "bfloat16", {input, filter}, Convolve(op, c.options)});
  cases.push_back({input_grad, "bfloat16", {Sizes(c.input), filter, gradient}, Convolve(input_grad, c.options)});
  cases.push_back({filter_grad, "bfloat16", {input, Sizes(c.filter), gradient}, Convolve(filter_grad, c.options)});
}

void AddConvolutionCases(std::vector<OpCase>& cases) {
  const Convolution full[] = {
      {"valid", {2, 5, 4, 3}, {3, 2, 3, 2}, {2, 3, 3, 2}, {}},
      {"same", {1, 5, 4, 1}, {3, 3, 1, 4}, {1, 5, 4, 4}, {.padding = "SAME"}},
      {"pointwise", {2, 3, 2, 4}, {1, 1, 4, 5}, {2, 3, 2, 5}, {}},
      {"stride", {1, 6, 7, 2}, {3, 3, 2, 3}, {1, 3, 3, 3}, {.strides = {2, 3}, .padding = "SAME"}},
      {"dilated", {1, 6, 7, 2}, {2, 2, 2, 3}, {1, 6, 7, 3}, {.dilations = {2, 3}, .padding = "SAME"}},
      {"explicit_paddings",
       {1, 4, 3, 2},
       {2, 3, 2, 2},
       {1, 6, 5, 2},
       {.padding = "EXPLICIT", .paddings = {2, 1, 3, 1}}},
      {"blocks", {1, 3, 3, 16}, {2, 2, 16, 32}, {1, 2, 2, 32}, {}},
  };
  for (const Convolution& c : full) AddConvolution(cases, "Conv2D", c);
  AddBfloat16(cases, "Conv2D", full[1]);
  const auto transposed = [](Graph&, const Outputs& in) {
    return Outputs{ops::Conv2DBackpropInput(in[0], in[1], in[2], {.strides = {2, 3}, .padding = "SAME"})};
  };
  cases.push_back(Checked({"Conv2DBackpropInput",
                           "rows_and_columns",
                           {Tensor::Vector<int32_t>({6, 7}), Floats({3, 3, 2, 3}), Floats({2, 3, 3, 3}, -1, 1, 3)},
                           transposed,
                           {1, 2}},
                          0.25, 1e-4));
  const Convolution depthwise[] = {
      {"valid", {2, 5, 4, 3}, {3, 2, 3, 1}, {2, 3, 3, 3}, {}},
      {"same", {1, 5, 4, 16}, {3, 3, 16, 1}, {1, 5, 4, 16}, {.padding = "SAME"}},
      {"multiplier", {1, 4, 4, 2}, {2, 2, 2, 3}, {1, 4, 4, 6}, {.padding = "SAME"}},
      {"stride", {1, 6, 7, 2}, {3, 3, 2, 1}, {1, 3, 4, 2}, {.strides = {2, 2}, .padding = "SAME"}},
  };
  for (const Convolution& c : depthwise) AddConvolution(cases, "DepthwiseConv2dNative", c);
  AddBfloat16(cases, "DepthwiseConv2dNative", depthwise[1]);
  cases.push_back({"Conv2D",
                   "groups",
                   {Floats({1, 4, 4, 4}), Floats({3, 3, 2, 6}, -1, 1, 2)},
                   Convolve("Conv2D", {.padding = "SAME"})});
  cases.push_back({"DepthwiseConv2dNative",
                   "no_images",
                   {Floats({0, 4, 4, 2}), Floats({3, 3, 2, 1})},
                   Convolve("DepthwiseConv2dNative", {}),
                   {0, 1}});
  cases.push_back(
      {"Conv2D", "no_images", {Floats({0, 4, 4, 2}), Floats({3, 3, 2, 3})}, Convolve("Conv2D", {}), {0, 1}});
}

OpCase::Build Pool(const std::string& op, const ops::PoolOptions& o) {
  return [op, o](Graph& graph, const Outputs& in) {
    NodeBuilder builder = graph.Op(op);
    for (const Output& input : in) builder.Input(input);
    builder.Attr("ksize", IntList{1, o.size[0], o.size[1], 1})
        .Attr("strides", IntList{1, o.strides[0], o.strides[1], 1});
    return Outputs{builder.Attr("padding", o.padding).Finish1()};
  };
}

// Builds MaxPoolGrad or MaxPoolGradGrad of a pool in the same graph, as gradients do.
OpCase::Build MaxPoolGradient(const std::string& op, const ops::PoolOptions& o) {
  return [op, o](Graph& graph, const Outputs& in) {
    return Pool(op, o)(graph, {in[0], ops::MaxPool(in[0], o), in[1]});
  };
}

void AddPoolingCases(std::vector<OpCase>& cases) {
  struct PoolCase {
    const char* label;
    Shape input;
    Shape output;
    ops::PoolOptions options;
  };
  for (const PoolCase& c :
       {PoolCase{"two_by_two", {2, 5, 4, 3}, {2, 2, 2, 3}, {}}, PoolCase{"blocks", {1, 4, 4, 16}, {1, 2, 2, 16}, {}},
        PoolCase{"overlapping", {1, 5, 6, 2}, {1, 5, 3, 2}, {{3, 2}, {1, 2}, "SAME"}}}) {
    // Neighbouring values differ by 0.5.
    const double high = 0.25 * static_cast<double>(c.input.num_elements());
    const Tensor points = Floats(c.input, -high, high), gradient = Floats(c.output, -1, 1, 3);
    cases.push_back(Checked({"MaxPool", c.label, {points}, Pool("MaxPool", c.options), {0}}, 0.125, 1e-4));
    cases.push_back(Checked(
        {"MaxPoolGrad", c.label, {points, gradient}, MaxPoolGradient("MaxPoolGrad", c.options), {1}}, 0.25, 1e-4));
    cases.push_back(Checked({"MaxPoolGradGrad",
                             c.label,
                             {points, Floats(c.input, -1, 1, 5)},
                             MaxPoolGradient("MaxPoolGradGrad", c.options),
                             {1}},
                            0.25, 1e-4));
    cases.push_back(Checked({"AvgPool", c.label, {Floats(c.input)}, Pool("AvgPool", c.options), {0}}, 0.25, 1e-4));
    cases.push_back(
        Checked({"AvgPoolGrad", c.label, {Sizes(c.input), gradient}, Pool("AvgPoolGrad", c.options), {1}}, 0.25, 1e-4));
  }
  const Tensor equal(AsType(Tensor::Zeros(DType::kFloat64, {1, 4, 4, 1}), DType::kFloat32));
  cases.push_back({"AvgPool", "no_images", {Floats({0, 4, 4, 2})}, Pool("AvgPool", {}), {0}});
  const Tensor none = Floats({0, 4, 4, 2});
  for (OpCase no_images :
       {OpCase{"MaxPool", "no_images", {none}, Pool("MaxPool", {}), {0}},
        OpCase{"MaxPoolGrad", "no_images", {none, Floats({0, 2, 2, 2})}, MaxPoolGradient("MaxPoolGrad", {}), {1}}}) {
    no_images.compare_values = false;  // TensorFlow's gradient kernel aborts the process
    cases.push_back(std::move(no_images));
  }
  cases.push_back({"MaxPoolGrad", "equal", {equal, Floats({1, 2, 2, 1})}, MaxPoolGradient("MaxPoolGrad", {})});
  const Tensor half = AsType(Scatter({1, 4, 5, 3}), DType::kBfloat16);
  cases.push_back({"MaxPool", "bfloat16", {half}, Pool("MaxPool", {})});
  cases.push_back({"AvgPool", "bfloat16", {half}, Pool("AvgPool", {})});
}

OpCase::Build Normalize(const ops::BatchNormOptions& o, bool all) {
  return [o, all](Graph&, const Outputs& in) {
    const ops::BatchNorm norm = ops::FusedBatchNorm(in[0], in[1], in[2], in[3], in[4], o);
    return all ? Outputs{norm.y, norm.mean, norm.variance} : Outputs{norm.y};
  };
}

OpCase::Build NormalizeGradient(bool training) {
  return [training](Graph& graph, const Outputs& in) {
    NodeBuilder builder = graph.Op("FusedBatchNormGradV3");
    for (const Output& input : in) builder.Input(input);
    Node* node = builder.Input(in[4]).Attr("epsilon", 0.1f).Attr("is_training", training).Finish();
    return Outputs{node->output(0), node->output(1), node->output(2)};
  };
}

// Returns the mean and the variance (divided by the count) of each channel of x [batch, rows, columns, channels], as
// float32.
std::pair<Tensor, Tensor> Statistics(const Tensor& x) {
  const int64_t channels = x.shape().dim(3);
  const int64_t count = x.num_elements() / channels;
  Tensor mean = Tensor::Zeros(DType::kFloat32, {channels}), variance = Tensor::Zeros(DType::kFloat32, {channels});
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; ++i) sum += x.data<float>()[i * channels + c];
    for (int64_t i = 0; i < count; ++i) {
      const double distance = x.data<float>()[i * channels + c] - sum / static_cast<double>(count);
      squares += distance * distance;
    }
    mean.data<float>()[c] = static_cast<float>(sum / static_cast<double>(count));
    variance.data<float>()[c] = static_cast<float>(squares / static_cast<double>(count));
  }
  return {mean, variance};
}

void AddNormalizationCases(std::vector<OpCase>& cases) {
  for (const int64_t channels : {3, 16}) {
    const std::string suffix = channels == 3 ? "" : "_blocks";
    const Shape shape = channels == 3 ? Shape{2, 3, 2, 3} : Shape{1, 2, 2, 16};
    const Tensor x = Floats(shape, -2, 2), dy = Floats(shape, -1, 1, 4);
    const Tensor scale = Floats({channels}, 0.5, 1.5), offset = Floats({channels}, -1, 1, 2);
    const Tensor mean = Floats({channels}, -0.5, 0.5, 3), variance = Floats({channels}, 0.5, 2, 4);
    const auto [batch_mean, batch_variance] = Statistics(x);
    const std::vector<Tensor> inputs = {x, scale, offset, mean, variance};
    cases.push_back(Checked(
        {"FusedBatchNormV3", "training" + suffix, inputs, Normalize({.epsilon = 0.1f}, false), {0, 1, 2}}, 0.02, 5e-3));
    cases.push_back(Checked({"FusedBatchNormV3",
                             "inference" + suffix,
                             inputs,
                             Normalize({.epsilon = 0.1f, .is_training = false}, false),
                             {0, 1, 2}},
                            0.25, 1e-3));
    cases.push_back({"FusedBatchNormV3", "statistics" + suffix, inputs, Normalize({.epsilon = 0.1f}, true)});
    cases.push_back({"FusedBatchNormV3", "moving" + suffix, inputs,
                     Normalize({.epsilon = 0.1f, .exponential_avg_factor = 0.25f}, true)});
    // In training the statistics are those of x, although they are inputs here. So only dy and scale may change alone.
    cases.push_back(Checked({"FusedBatchNormGradV3",
                             "training" + suffix,
                             {dy, x, scale, batch_mean, batch_variance},
                             NormalizeGradient(true),
                             {0, 2}},
                            0.25, 1e-3));
    cases.push_back(Checked({"FusedBatchNormGradV3",
                             "inference" + suffix,
                             {dy, x, scale, mean, variance},
                             NormalizeGradient(false),
                             {0, 1, 2}},
                            0.25, 1e-3));
  }
  const std::vector<Tensor> half = {AsType(Scatter({2, 3, 2, 16}, -2, 2), DType::kBfloat16), Floats({16}, 0.5, 1.5),
                                    Floats({16}), Floats({16}), Floats({16}, 0.5, 2)};
  cases.push_back({"FusedBatchNormV3", "bfloat16", half, Normalize({.epsilon = 0.1f}, false)});
}

}  // namespace

void AddConvolutionalCases(std::vector<OpCase>& cases) {
  AddConvolutionCases(cases);
  AddPoolingCases(cases);
  AddNormalizationCases(cases);
}

}  // namespace cohort::testing
