// ONNX forms of convolutions, pools, resized images and normalization of batches, which ONNX has for NCHW.
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

// Padding and the rest of a window's attributes. `size`: of the window; `shape`: of the images over which it moves.
// NHWC throughout.
OnnxAttributes WindowAttributes(const Node& node, const Shape& shape, const std::vector<int64_t>& size,
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
      if (t.Uses(x) == 1 && (from == "Conv2D" || from == "DepthwiseConv2dNative" || from == "Conv2DBackpropInput")) {
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

  static Tensor Kernel(OnnxTranslation& t, const Node& node) {
    const Tensor kernel = t.Constant(node.input(1));
    if (kernel.dtype() == DType::kFloat32 && node.attr<std::string>("data_format") == "NHWC") return kernel;
    throw UnimplementedError(
        StrCat("[keras/onnx] expected convolutions in NHWC whose kernel is a weight; got ", node.Describe()));
  }

  static void Convolution(OnnxTranslation& t, const Node& node) {
    const bool depthwise = node.op_name() == "DepthwiseConv2dNative";
    const Tensor kernel = Kernel(t, node);
    const std::string name = t.Plain(node.input(1)) + "/onnx";
    const int64_t in = node.input(0).shape().dim(3);
    const int64_t groups = depthwise ? kernel.shape().dim(2) : in / kernel.shape().dim(2);
    const std::vector<int64_t> dilations = Spatial(node, "dilations");
    OnnxAttributes attributes =
        WindowAttributes(node, node.input(0).shape(), {kernel.shape().dim(0), kernel.shape().dim(1)}, dilations);
    attributes.emplace_back("dilations", dilations);
    attributes.emplace_back("group", groups);
    const std::string turned = t.onnx().AddConstant(name, TurnedKernel(kernel, depthwise));
    t.SetNchw(node, t.onnx().Add("Conv", node.name(), {t.Nchw(node.input(0)), turned}, attributes));
  }

  // The window moves over the result. ONNX computes the size of the result from the input; output_padding is what is
  // missing then.
  static void TransposedConvolution(OnnxTranslation& t, const Node& node) {
    const Tensor kernel = Kernel(t, node);
    const Shape &input = node.input(2).shape(), &result = node.output_shape(0);
    if (input.dim(1) < 0 || input.dim(2) < 0 || result.dim(1) < 0 || result.dim(2) < 0 ||
        kernel.shape().dim(2) != result.dim(3)) {
      throw UnimplementedError(
          StrCat("[keras/onnx] expected transposed convolutions of images of a known size, in one group; got ",
                 node.Describe()));
    }
    const std::vector<int64_t> dilations = Spatial(node, "dilations"), strides = Spatial(node, "strides");
    const std::vector<int64_t> size = {kernel.shape().dim(0), kernel.shape().dim(1)};
    OnnxAttributes attributes = WindowAttributes(node, result, size, dilations);
    std::vector<int64_t> pads(4, 0), missing;
    for (const auto& [name, value] : attributes) {
      if (std::string(name) == "pads") pads = std::get<std::vector<int64_t>>(value);
    }
    for (size_t i = 0; i < 2; ++i) {
      const int axis = static_cast<int>(i) + 1;
      const int64_t whole = (input.dim(axis) - 1) * strides[i] + (size[i] - 1) * dilations[i] + 1;
      missing.push_back(result.dim(axis) - (whole - pads[i] - pads[i + 2]));
    }
    attributes.emplace_back("dilations", dilations);
    attributes.emplace_back("output_padding", missing);
    const std::string turned = t.onnx().AddConstant(t.Plain(node.input(1)) + "/onnx", TurnedKernel(kernel, false));
    t.SetNchw(node, t.onnx().Add("ConvTranspose", node.name(), {t.Nchw(node.input(2)), turned}, attributes));
  }

  static void Pool(OnnxTranslation& t, const Node& node) {
    const bool mean = node.op_name() == "AvgPool";
    OnnxAttributes attributes = WindowAttributes(node, node.input(0).shape(), Spatial(node, "ksize"), {1, 1});
    if (mean) attributes.emplace_back("count_include_pad", int64_t{0});
    const char* op = mean ? "AveragePool" : "MaxPool";
    t.SetNchw(node, t.onnx().Add(op, node.name(), {t.Nchw(node.input(0))}, attributes));
  }

  // The places of pixels are those of ops::ResizeOptions, and so is the rounding to the nearest.
  static void Resize(OnnxTranslation& t, const Node& node) {
    const Shape& result = node.output_shape(0);
    if (result.dim(1) < 0 || result.dim(2) < 0) {
      throw UnimplementedError(
          StrCat("[keras/onnx] expected images that are resized to a known size; got ", node.Describe()));
    }
    const bool corners = node.attr<bool>("align_corners"), centers = node.attr<bool>("half_pixel_centers");
    const std::string images = t.Nchw(node.input(0));
    const std::string size = t.onnx().AddConstant(node.name() + "/size", {result.dim(1), result.dim(2)});
    const std::string kept =
        t.onnx().Add("Shape", node.name() + "/kept", {images}, {{"start", int64_t{0}}, {"end", int64_t{2}}});
    const std::string shape = t.onnx().Add("Concat", node.name() + "/shape", {kept, size}, {{"axis", int64_t{0}}});
    OnnxAttributes attributes = {{"coordinate_transformation_mode", std::string(corners   ? "align_corners"
                                                                                : centers ? "half_pixel"
                                                                                          : "asymmetric")},
                                 {"mode", std::string(node.op_name() == "ResizeBilinear" ? "linear" : "nearest")}};
    if (node.op_name() != "ResizeBilinear") {
      attributes.emplace_back("nearest_mode", std::string(corners || centers ? "round_prefer_ceil" : "floor"));
    }
    t.SetNchw(node, t.onnx().Add("Resize", node.name(), {images, "", "", shape}, attributes));
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
                                  {"Conv2DBackpropInput", ImageRules::TransposedConvolution},
                                  {"MaxPool", ImageRules::Pool},
                                  {"AvgPool", ImageRules::Pool},
                                  {"ResizeBilinear", ImageRules::Resize},
                                  {"ResizeNearestNeighbor", ImageRules::Resize},
                                  {"FusedBatchNormV3", ImageRules::BatchNorm}};
  return rules;
}

}  // namespace cohort::keras
