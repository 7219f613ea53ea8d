#include "cohort/keras/files/onnx_nodes.h"

#include <algorithm>
#include <set>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/constant_value.h"

namespace cohort::keras {
namespace {

const std::vector<int64_t> kToNchw = {0, 3, 1, 2};
const std::vector<int64_t> kToNhwc = {0, 2, 3, 1};

using Ints = std::vector<int64_t>;

// What the window of a convolution or pool has for rows and columns.
Ints Spatial(const Node& node, const char* attr) {
  const Ints& all = node.attr<Ints>(attr);
  return {all.at(1), all.at(2)};
}

// Padding and the rest of a window's attributes. `size`: of the window; NHWC throughout.
OnnxAttributes WindowAttributes(const Node& node, const Ints& size, const Ints& dilations) {
  const Ints strides = Spatial(node, "strides");
  OnnxAttributes attributes = {{"kernel_shape", size}, {"strides", strides}};
  const std::string& padding = node.attr<std::string>("padding");
  if (padding == "VALID") return attributes;
  if (padding == "EXPLICIT") {
    const Ints& given = node.attr<Ints>("explicit_paddings");
    attributes.emplace_back("pads", Ints{given.at(2), given.at(4), given.at(3), given.at(5)});
    return attributes;
  }
  Ints begin, end;
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
  attributes.emplace_back("pads", Ints{begin[0], begin[1], end[0], end[1]});
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

}  // namespace

Tensor OnnxTranslation::Constant(const Output& output) const {
  if (output.node->op_name() == "ReadVariableOp") {
    const auto found = variables_.find(output.node->input(0).node);
    if (found != variables_.end()) return found->second.value;
  }
  if (output.node->op_name() == "Identity") return Constant(output.node->input(0));
  return ConstantValue(output).value_or(Tensor());
}

std::vector<int64_t> OnnxTranslation::Integers(const Output& output) const {
  const Tensor value = Constant(output);
  if (value.dtype() == DType::kInt64) return value.ToVector<int64_t>();
  if (value.dtype() == DType::kInt32) {
    const std::vector<int32_t> narrow = value.ToVector<int32_t>();
    return {narrow.begin(), narrow.end()};
  }
  throw UnimplementedError(
      StrCat("[keras/onnx] expected ", output.name(), " to be known when the model is exported; it is computed"));
}

std::string OnnxTranslation::Plain(const Output& output) {
  Value& value = values_.at(Key(output));
  if (value.plain.empty()) {
    value.plain = onnx_.Add("Transpose", value.nchw + "/nhwc", {value.nchw}, {{"perm", kToNhwc}});
  }
  return value.plain;
}

std::string OnnxTranslation::Nchw(const Output& output) {
  Value& value = values_.at(Key(output));
  if (value.nchw.empty()) {
    value.nchw = onnx_.Add("Transpose", value.plain + "/nchw", {value.plain}, {{"perm", kToNchw}});
  }
  return value.nchw;
}

bool OnnxTranslation::OnlyNchw(const Output& output) const {
  const Value& value = values_.at(Key(output));
  return value.plain.empty() && !value.nchw.empty();
}

// What becomes of each op. A rule gives output 0 of its node a name.
struct OnnxRules {
  using Rule = void (*)(OnnxTranslation& t, const Node& node);

  static void Alias(OnnxTranslation& t, const Node& node) {
    t.values_[{&node, 0}] = t.values_.at(OnnxTranslation::Key(node.input(0)));
  }

  static void Constant(OnnxTranslation& t, const Node& node) {
    t.SetPlain(node, t.onnx_.AddConstant(node.name(), node.attr<Tensor>("value")));
  }

  static void Variable(OnnxTranslation& t, const Node& node) {
    const auto found = t.variables_.find(node.input(0).node);
    if (found == t.variables_.end()) {
      throw UnimplementedError(
          StrCat("[keras/onnx] expected a model that reads its weights alone; ", node.Describe(), " reads another"));
    }
    t.SetPlain(node, t.onnx_.AddConstant(found->second.name, found->second.value));
  }

  // Element by element, in whichever layout there is.
  static void Unary(OnnxTranslation& t, const Node& node, const char* op, const OnnxAttributes& attributes = {}) {
    if (t.OnlyNchw(node.input(0))) {
      t.SetNchw(node, t.onnx_.Add(op, node.name(), {t.Nchw(node.input(0))}, attributes));
    } else {
      t.SetPlain(node, t.onnx_.Add(op, node.name(), {t.Plain(node.input(0))}, attributes));
    }
  }

  // Values of rank 4 stay in NCHW where all of them are in it, beside scalars.
  static void Binary(OnnxTranslation& t, const Node& node, const char* op) {
    bool nchw = false, plain = false;
    for (const Output& input : node.inputs()) {
      if (input.shape().rank() == 0) continue;
      (input.shape().rank() == 4 && t.OnlyNchw(input) ? nchw : plain) = true;
    }
    std::vector<std::string> inputs;
    for (const Output& input : node.inputs()) {
      const bool turned = nchw && !plain && input.shape().rank() == 4;
      inputs.push_back(turned ? t.Nchw(input) : t.Plain(input));
    }
    const std::string result = t.onnx_.Add(op, node.name(), inputs);
    nchw && !plain ? t.SetNchw(node, result) : t.SetPlain(node, result);
  }

  static void Relu6(OnnxTranslation& t, const Node& node) {
    const std::string low = t.onnx_.AddConstant(node.name() + "/low", Tensor::Scalar(0.0f));
    const std::string high = t.onnx_.AddConstant(node.name() + "/high", Tensor::Scalar(6.0f));
    const bool nchw = t.OnlyNchw(node.input(0));
    const std::string x = nchw ? t.Nchw(node.input(0)) : t.Plain(node.input(0));
    const std::string result = t.onnx_.Add("Clip", node.name(), {x, low, high});
    nchw ? t.SetNchw(node, result) : t.SetPlain(node, result);
  }

  static void LeakyRelu(OnnxTranslation& t, const Node& node) {
    Unary(t, node, "LeakyRelu", {{"alpha", node.attr<float>("alpha")}});
  }

  static void Rsqrt(OnnxTranslation& t, const Node& node) {
    const std::string root = t.onnx_.Add("Sqrt", node.name() + "/sqrt", {t.Plain(node.input(0))});
    t.SetPlain(node, t.onnx_.Add("Reciprocal", node.name(), {root}));
  }

  static void Square(OnnxTranslation& t, const Node& node) {
    const std::string x = t.Plain(node.input(0));
    t.SetPlain(node, t.onnx_.Add("Mul", node.name(), {x, x}));
  }

  static void SquaredDifference(OnnxTranslation& t, const Node& node) {
    const std::string x =
        t.onnx_.Add("Sub", node.name() + "/difference", {t.Plain(node.input(0)), t.Plain(node.input(1))});
    t.SetPlain(node, t.onnx_.Add("Mul", node.name(), {x, x}));
  }

  static void Softmax(OnnxTranslation& t, const Node& node) {
    const char* op = node.op_name() == "Softmax" ? "Softmax" : "LogSoftmax";
    t.SetPlain(node, t.onnx_.Add(op, node.name(), {t.Plain(node.input(0))}, {{"axis", int64_t{-1}}}));
  }

  static void Cast(OnnxTranslation& t, const Node& node) {
    Unary(t, node, "Cast", {{"to", int64_t{OnnxGraph::TypeNumber(node.output_dtype(0))}}});
  }

  static void MatMul(OnnxTranslation& t, const Node& node) {
    std::vector<std::string> inputs;
    for (int i = 0; i < 2; ++i) {
      inputs.push_back(t.Plain(node.input(i)));
      if (!node.attr<bool>(i == 0 ? "transpose_a" : "transpose_b")) continue;
      inputs.back() = t.onnx_.Add("Transpose", inputs.back() + "/turned", {inputs.back()}, {{"perm", Ints{1, 0}}});
    }
    t.SetPlain(node, t.onnx_.Add("MatMul", node.name(), inputs));
  }

  static void BiasAdd(OnnxTranslation& t, const Node& node) {
    const Output& x = node.input(0);
    const std::string& from = x.node->op_name();
    const Tensor bias = t.Constant(node.input(1));
    if (t.OnlyNchw(x) && bias.defined()) {
      const bool alone = t.uses_[OnnxTranslation::Key(x)] == 1;
      if (alone && (from == "Conv2D" || from == "DepthwiseConv2dNative")) {
        t.onnx_.AppendInput(t.Nchw(x), t.Plain(node.input(1)));
        Alias(t, node);
        return;
      }
      const Tensor column = bias.Reshaped(Shape{bias.num_elements(), 1, 1});
      const std::string name = t.onnx_.AddConstant(node.name() + "/bias", column);
      t.SetNchw(node, t.onnx_.Add("Add", node.name(), {t.Nchw(x), name}));
      return;
    }
    t.SetPlain(node, t.onnx_.Add("Add", node.name(), {t.Plain(x), t.Plain(node.input(1))}));
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
    const Ints dilations = Spatial(node, "dilations");
    OnnxAttributes attributes = WindowAttributes(node, {kernel.shape().dim(0), kernel.shape().dim(1)}, dilations);
    attributes.emplace_back("dilations", dilations);
    attributes.emplace_back("group", groups);
    const std::string turned = t.onnx_.AddConstant(name, TurnedKernel(kernel, depthwise));
    t.SetNchw(node, t.onnx_.Add("Conv", node.name(), {t.Nchw(node.input(0)), turned}, attributes));
  }

  static void Pool(OnnxTranslation& t, const Node& node) {
    const bool mean = node.op_name() == "AvgPool";
    OnnxAttributes attributes = WindowAttributes(node, Spatial(node, "ksize"), {1, 1});
    if (mean) attributes.emplace_back("count_include_pad", int64_t{0});
    const char* op = mean ? "AveragePool" : "MaxPool";
    t.SetNchw(node, t.onnx_.Add(op, node.name(), {t.Nchw(node.input(0))}, attributes));
  }

  static void BatchNorm(OnnxTranslation& t, const Node& node) {
    std::vector<std::string> inputs = {t.Nchw(node.input(0))};
    for (int i = 1; i < 5; ++i) inputs.push_back(t.Plain(node.input(i)));
    t.SetNchw(node, t.onnx_.Add("BatchNormalization", node.name(), inputs, {{"epsilon", node.attr<float>("epsilon")}}));
  }

  static void Reshape(OnnxTranslation& t, const Node& node) {
    const std::string shape = t.onnx_.AddConstant(node.name() + "/shape", t.Integers(node.input(1)));
    t.SetPlain(node, t.onnx_.Add("Reshape", node.name(), {t.Plain(node.input(0)), shape}));
  }

  static void Concat(OnnxTranslation& t, const Node& node) {
    const int last = node.num_inputs() - 1;
    int64_t axis = t.Integers(node.input(last)).at(0);
    bool nchw = true;
    for (int i = 0; i < last; ++i) nchw = nchw && t.OnlyNchw(node.input(i));
    if (nchw) axis = static_cast<int64_t>(std::find(kToNchw.begin(), kToNchw.end(), (axis + 4) % 4) - kToNchw.begin());
    std::vector<std::string> inputs;
    inputs.reserve(static_cast<size_t>(last));
    for (int i = 0; i < last; ++i) inputs.push_back(nchw ? t.Nchw(node.input(i)) : t.Plain(node.input(i)));
    const std::string result = t.onnx_.Add("Concat", node.name(), inputs, {{"axis", axis}});
    nchw ? t.SetNchw(node, result) : t.SetPlain(node, result);
  }

  static void Reduce(OnnxTranslation& t, const Node& node) {
    Ints axes = t.Integers(node.input(1));
    const int64_t keep = node.attr<bool>("keep_dims") ? 1 : 0;
    const Output& x = node.input(0);
    for (int64_t& axis : axes) axis = axis < 0 ? axis + x.shape().rank() : axis;
    std::sort(axes.begin(), axes.end());
    // Over rows and columns, the channels' place does not matter.
    const bool nchw = t.OnlyNchw(x) && axes == Ints{1, 2};
    if (nchw) axes = {2, 3};
    const std::string value = nchw ? t.Nchw(x) : t.Plain(x);
    std::string result;
    if (node.op_name() == "Sum") {  // the one that takes them as an input in this opset
      const std::string input = t.onnx_.AddConstant(node.name() + "/axes", axes);
      result = t.onnx_.Add("ReduceSum", node.name(), {value, input}, {{"keepdims", keep}});
    } else {
      result =
          t.onnx_.Add(("Reduce" + node.op_name()).c_str(), node.name(), {value}, {{"axes", axes}, {"keepdims", keep}});
    }
    nchw&& keep == 1 ? t.SetNchw(node, result) : t.SetPlain(node, result);
  }

  static void Gather(OnnxTranslation& t, const Node& node) {
    const auto found = t.variables_.find(node.input(0).node);
    if (found == t.variables_.end()) {
      throw UnimplementedError(StrCat("[keras/onnx] expected rows of a weight; got ", node.Describe()));
    }
    const std::string rows = t.onnx_.AddConstant(found->second.name, found->second.value);
    t.SetPlain(node, t.onnx_.Add("Gather", node.name(), {rows, t.Plain(node.input(1))}, {{"axis", int64_t{0}}}));
  }

  static const std::map<std::string, const char*>& Unaries() {
    static const std::map<std::string, const char*> ops = {
        {"Relu", "Relu"},         {"Elu", "Elu"},           {"Selu", "Selu"},   {"Sigmoid", "Sigmoid"},
        {"Tanh", "Tanh"},         {"Softplus", "Softplus"}, {"Exp", "Exp"},     {"Log", "Log"},
        {"Sqrt", "Sqrt"},         {"Abs", "Abs"},           {"Neg", "Neg"},     {"Erf", "Erf"},
        {"Softsign", "Softsign"}, {"Floor", "Floor"},       {"Ceil", "Ceil"},   {"Sign", "Sign"},
        {"Sin", "Sin"},           {"Cos", "Cos"},           {"Round", "Round"}, {"Reciprocal", "Reciprocal"}};
    return ops;
  }

  static const std::map<std::string, const char*>& Binaries() {
    static const std::map<std::string, const char*> ops = {{"Add", "Add"},     {"AddV2", "Add"},   {"Sub", "Sub"},
                                                           {"Mul", "Mul"},     {"Div", "Div"},     {"Pow", "Pow"},
                                                           {"RealDiv", "Div"}, {"Maximum", "Max"}, {"Minimum", "Min"}};
    return ops;
  }

  static const std::map<std::string, Rule>& Others() {
    static const std::map<std::string, Rule> rules = {
        {"Const", Constant},
        {"ReadVariableOp", Variable},
        {"Identity", Alias},
        {"StopGradient", Alias},
        {"Relu6", Relu6},
        {"LeakyRelu", LeakyRelu},
        {"Rsqrt", Rsqrt},
        {"Square", Square},
        {"SquaredDifference", SquaredDifference},
        {"Softmax", Softmax},
        {"LogSoftmax", Softmax},
        {"Cast", Cast},
        {"MatMul", MatMul},
        {"BiasAdd", BiasAdd},
        {"Conv2D", Convolution},
        {"DepthwiseConv2dNative", Convolution},
        {"MaxPool", Pool},
        {"AvgPool", Pool},
        {"FusedBatchNormV3", BatchNorm},
        {"Reshape", Reshape},
        {"ConcatV2", Concat},
        {"Mean", Reduce},
        {"Sum", Reduce},
        {"Max", Reduce},
        {"Min", Reduce},
        {"ResourceGather", Gather},
    };
    return rules;
  }
};

void OnnxTranslation::AddNode(const Node& node) {
  const std::string& op = node.op_name();
  if (const auto unary = OnnxRules::Unaries().find(op); unary != OnnxRules::Unaries().end()) {
    OnnxRules::Unary(*this, node, unary->second);
  } else if (const auto binary = OnnxRules::Binaries().find(op); binary != OnnxRules::Binaries().end()) {
    OnnxRules::Binary(*this, node, binary->second);
  } else if (const auto other = OnnxRules::Others().find(op); other != OnnxRules::Others().end()) {
    other->second(*this, node);
  } else {
    throw UnimplementedError(StrCat("[keras/onnx] expected ops that have a form in ONNX; got ", node.Describe()));
  }
}

void OnnxTranslation::Add(const std::vector<Output>& outputs) {
  std::set<const Node*> needed;
  std::vector<const Node*> open;
  open.reserve(outputs.size());
  for (const Output& output : outputs) open.push_back(output.node);
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!needed.insert(node).second || values_.count({node, 0}) > 0) continue;
    for (const Output& input : node->inputs()) {
      ++uses_[Key(input)];
      open.push_back(input.node);
    }
  }
  for (const Output& output : outputs) ++uses_[Key(output)];
  if (outputs.empty()) return;
  for (const Node* node : outputs[0].graph().nodes()) {
    if (needed.count(node) == 0 || values_.count({node, 0}) > 0 || node->op_name() == "VarHandleOp") continue;
    AddNode(*node);
  }
}

}  // namespace cohort::keras
