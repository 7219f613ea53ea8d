// ONNX forms of convolutions, pools and normalization of batches, which ONNX has for NCHW.
#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/onnx_rules.h"

namespace cohort::keras {
namespace {

// The window of a convolution or pool, for rows and columns.
std::vector<int64_t> Spatial(const Node& node, const char* attr) {
  const std::vector<int64_t>& all = node.attr<std::vector<int64_t>>(attr);
  return {all.at(1), all.at(2)};
}

// Padding and the rest of a window's attributes. `size`: of the window; NHWC throughout.
OnnxAttributes WindowAttributes(const Node& node, const std::vector<int64_t>& size,
                                const std::vector<int64_t>& dilations) {
  const std::vector<int64_t> strides = Spatial(node, "strides");
  OnnxAttributes attributes = {{"kernel_shape", size}, {"strides", strides}};
  const std::string& padding = node.attr<std::string>("padding");
  if (padding == "VALID") return attributes;
  if (padding == "EXPLICIT") {
    const std::vector<int64_t>& given = node.attr<std::vector<int64_t>>("explicit_paddings");
    attributes.emplace_back("pads", std::vector<int64_t>{given.at(2), given.at(4), given.at(3), given.at(5)});
    return attributes;
  }
  std::vector<int64_t> begin, end;
  const Shape& shape = node.input(0).shape();
  for (int i = 0; i < 2; ++i) {
    const auto k = static_cast<size_t>(i);
    const int64_t in = shape.dim(i + 1);
    if (in < 0) {
      attributes.emplace_back("auto_pad", std::string("SAME_UPPER"));
      return attributes;
    }
    const int64_t out = (in + strides[k] - 1) / strides[k];
    const int64_t total = std::max<int64_t>(0, (out - 1) * strides[k] + (size[k] - 1) * dilations[k] + 1 - in);
    begin.push_back(total / 2);
    end.push_back(total - total / 2);
  }
  attributes.emplace_back("pads", std::vector<int64_t>{begin[0], begin[1], end[0], end[1]});
  return attributes;
}

// [rows, columns, in, out] to ONNX's [out, in, rows, columns]; depthwise: [rows, columns, channels, multiplier] to
// [channels * multiplier, 1, rows, columns].
Tensor TurnedKernel(const Tensor& kernel, bool depthwise) {
  const Shape& s = kernel.shape();
  const int64_t rows = s.dim(0), columns = s.dim(1), in = s.dim(2), out = s.dim(3);
  Tensor turned(kernel.dtype(), depthwise ? Shape{in * out, 1, rows, columns} : Shape{out, in, rows, columns});
  const float* from = kernel.data<float>();
  float* to = turned.data<float>();
  for (int64_t field = 0; field < rows * columns; ++field) {
    for (int64_t i = 0; i < in; ++i) {
      for (int64_t o = 0; o < out; ++o) {
        const int64_t place = depthwise ? i * out + o : o * in + i;
        to[place * rows * columns + field] = *from++;
      }
    }
  }
  return turned;
}

struct ImageRules {
  static void BiasAdd(OnnxTranslation& t, const Node& node) {
    const Output& x = node.input(0);
    const std::string& from = x.node->op_name();
    const Tensor bias = t.Constant(node.input(1));
    if (t.OnlyNchw(x) && bias.defined()) {
      if (t.Uses(x) == 1 && (from == "Conv2D" || from == "DepthwiseConv2dNative")) {
        t.onnx().AppendInput(t.Nchw(x), t.Plain(node.input(1)));
        t.SetAlias(node, x);
        return;
      }
      const Tensor column = bias.Reshaped(Shape{bias.num_elements(), 1, 1});
      const std::string name = t.onnx().AddConstant(node.name() + "/bias", column);
      t.SetNchw(node, t.onnx().Add("Add", node.name(), {t.Nchw(x), name}));
      return;
    }
    t.SetPlain(node, t.onnx().Add("Add", node.name(), {t.Plain(x), t.Plain(node.input(1))}));
  }

  static void Convolution(OnnxTranslation& t, const Node& node) {
    const bool depthwise = node.op_name() == "DepthwiseConv2dNative";
    const Tensor kernel = t.Constant(node.input(1));
    if (kernel.dtype() != DType::kFloat32 || node.attr<std::string>("data_format") != "NHWC") {
      throw UnimplementedError(
          StrCat("[keras/onnx] expected convolutions in NHWC whose kernel is a weight; got ", node.Describe()));
    }
    const std::string name = t.Plain(node.input(1)) + "/onnx";
    const int64_t in = node.input(0).shape().dim(3);
    const int64_t groups = depthwise ? kernel.shape().dim(2) : in / kernel.shape().dim(2);
    const std::vector<int64_t> dilations = Spatial(node, "dilations");
    OnnxAttributes attributes = WindowAttributes(node, {kernel.shape().dim(0), kernel.shape().dim(1)}, dilations);
    attributes.emplace_back("dilations", dilations);
    attributes.emplace_back("group", groups);
    const std::string turned = t.onnx().AddConstant(name, TurnedKernel(kernel, depthwise));
    t.SetNchw(node, t.onnx().Add("Conv", node.name(), {t.Nchw(node.input(0)), turned}, attributes));
  }

  static void Pool(OnnxTranslation& t, const Node& node) {
    const bool mean = node.op_name() == "AvgPool";
    OnnxAttributes attributes = WindowAttributes(node, Spatial(node, "ksize"), {1, 1});
    if (mean) attributes.emplace_back("count_include_pad", int64_t{0});
    const char* op = mean ? "AveragePool" : "MaxPool";
    t.SetNchw(node, t.onnx().Add(op, node.name(), {t.Nchw(node.input(0))}, attributes));
  }

  static void BatchNorm(OnnxTranslation& t, const Node& node) {
    std::vector<std::string> inputs = {t.Nchw(node.input(0))};
    for (int i = 1; i < 5; ++i) inputs.push_back(t.Plain(node.input(i)));
    t.SetNchw(node,
              t.onnx().Add("BatchNormalization", node.name(), inputs, {{"epsilon", node.attr<float>("epsilon")}}));
  }
};

}  // namespace

const OnnxRules& OnnxImageRules() {
  static const OnnxRules rules = {{"BiasAdd", ImageRules::BiasAdd},
                                  {"Conv2D", ImageRules::Convolution},
                                  {"DepthwiseConv2dNative", ImageRules::Convolution},
                                  {"MaxPool", ImageRules::Pool},
                                  {"AvgPool", ImageRules::Pool},
                                  {"FusedBatchNormV3", ImageRules::BatchNorm}};
  return rules;
}

}  // namespace cohort::keras
