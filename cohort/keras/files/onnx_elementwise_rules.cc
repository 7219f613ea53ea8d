// ONNX rules for elementwise ops, and for softmax and layer normalization, which work along the last axis. Each rule
// adds ONNX nodes for one op; the table is at the end.
#include "cohort/core/str_cat.h"
#include "cohort/keras/files/onnx_rules.h"
#include "cohort/ops/constant.h"

namespace cohort::keras {
namespace {

// Ops that differ from ONNX's in their name at most.
const std::map<std::string, const char*>& SameOps() {
  static const std::map<std::string, const char*> ops = {
      {"Relu", "Relu"},         {"Elu", "Elu"},
      {"Selu", "Selu"},         {"Sigmoid", "Sigmoid"},
      {"Tanh", "Tanh"},         {"Softplus", "Softplus"},
      {"Softsign", "Softsign"}, {"Exp", "Exp"},
      {"Log", "Log"},           {"Sqrt", "Sqrt"},
      {"Abs", "Abs"},           {"Neg", "Neg"},
      {"Erf", "Erf"},           {"Floor", "Floor"},
      {"Ceil", "Ceil"},         {"Sign", "Sign"},
      {"Sin", "Sin"},           {"Cos", "Cos"},
      {"Round", "Round"},       {"Reciprocal", "Reciprocal"},
      {"Add", "Add"},           {"AddV2", "Add"},
      {"Sub", "Sub"},           {"Mul", "Mul"},
      {"Div", "Div"},           {"RealDiv", "Div"},
      {"Pow", "Pow"},           {"Maximum", "Max"},
      {"Minimum", "Min"},       {"Equal", "Equal"},
      {"Less", "Less"},         {"LessEqual", "LessOrEqual"},
      {"Greater", "Greater"},   {"GreaterEqual", "GreaterOrEqual"},
      {"LogicalAnd", "And"},    {"LogicalOr", "Or"},
      {"LogicalNot", "Not"},    {"SelectV2", "Where"},
  };
  return ops;
}

// Returns the inputs of a node that broadcast against each other, in one layout. It is ONNX's if all values of rank 4
// exist only in ONNX's layout and the others are scalars. Otherwise it is Cohort's.
struct Operands {
  Operands(OnnxTranslation& t, const Node& node) {
    bool plain = false;
    for (const Output& input : node.inputs()) {
      if (input.shape().rank() == 0) continue;
      (input.shape().rank() == 4 && t.OnlyNchw(input) ? nchw : plain) = true;
    }
    nchw = nchw && !plain;
    for (const Output& input : node.inputs()) {
      names.push_back(nchw && input.shape().rank() == 4 ? t.Nchw(input) : t.Plain(input));
    }
  }

  std::vector<std::string> names;
  bool nchw = false;
};

// Adds a node that is computed element by element from the operands, as the value of `node`.
void SetResult(OnnxTranslation& t, const Node& node, const Operands& operands, const char* op,
               const std::vector<std::string>& inputs, const OnnxAttributes& attributes = {}) {
  const std::string result = t.onnx().Add(op, node.name(), inputs, attributes);
  operands.nchw ? t.SetNchw(node, result) : t.SetPlain(node, result);
}

struct ElementwiseRules {
  static void Same(OnnxTranslation& t, const Node& node) {
    const Operands operands(t, node);
    SetResult(t, node, operands, SameOps().at(node.op_name()), operands.names);
  }

  static void NotEqual(OnnxTranslation& t, const Node& node) {
    const Operands operands(t, node);
    SetResult(t, node, operands, "Not", {t.onnx().Add("Equal", node.name() + "/equal", operands.names)});
  }

  static void Relu6(OnnxTranslation& t, const Node& node) {
    const Operands operands(t, node);
    const std::string low = t.onnx().AddConstant(node.name() + "/low", Tensor::Scalar(0.0f));
    const std::string high = t.onnx().AddConstant(node.name() + "/high", Tensor::Scalar(6.0f));
    SetResult(t, node, operands, "Clip", {operands.names[0], low, high});
  }

  // ONNX's Clip accepts only scalars; Cohort's bounds may broadcast.
  static void ClipByValue(OnnxTranslation& t, const Node& node) {
    const Operands operands(t, node);
    const std::string above = t.onnx().Add("Max", node.name() + "/max", {operands.names[0], operands.names[1]});
    SetResult(t, node, operands, "Min", {above, operands.names[2]});
  }

  static void LeakyRelu(OnnxTranslation& t, const Node& node) {
    const Operands operands(t, node);
    SetResult(t, node, operands, "LeakyRelu", operands.names, {{"alpha", node.attr<float>("alpha")}});
  }

  static void Rsqrt(OnnxTranslation& t, const Node& node) {
    const Operands operands(t, node);
    SetResult(t, node, operands, "Reciprocal", {t.onnx().Add("Sqrt", node.name() + "/sqrt", operands.names)});
  }

  static void Square(OnnxTranslation& t, const Node& node) {
    const Operands operands(t, node);
    SetResult(t, node, operands, "Mul", {operands.names[0], operands.names[0]});
  }

  static void SquaredDifference(OnnxTranslation& t, const Node& node) {
    const Operands operands(t, node);
    const std::string difference = t.onnx().Add("Sub", node.name() + "/difference", operands.names);
    SetResult(t, node, operands, "Mul", {difference, difference});
  }

  static void Cast(OnnxTranslation& t, const Node& node) {
    const Operands operands(t, node);
    const int64_t type = OnnxGraph::TypeNumber(node.output_dtype(0));
    SetResult(t, node, operands, "Cast", operands.names, {{"to", type}});
  }

  // The condition may have one flag for each row. ONNX's Where would take these for flags of columns.
  static void Select(OnnxTranslation& t, const Node& node) {
    const Shape& rows = node.input(0).shape();
    const Shape& values = node.input(1).shape();
    if (rows.rank() != 1 || values.rank() < 2) {
      const Operands operands(t, node);
      SetResult(t, node, operands, "Where", operands.names);
      return;
    }
    std::vector<int64_t> axes;
    for (int64_t axis = 1; axis < values.rank(); ++axis) axes.push_back(axis);
    const std::string name = t.onnx().AddConstant(node.name() + "/axes", axes);
    const std::string flags = t.onnx().Add("Unsqueeze", node.name() + "/rows", {t.Plain(node.input(0)), name});
    t.SetPlain(node, t.onnx().Add("Where", node.name(), {flags, t.Plain(node.input(1)), t.Plain(node.input(2))}));
  }

  static void FilledLike(OnnxTranslation& t, const Node& node) {
    const int number = node.op_name() == "OnesLike" ? 1 : 0;
    const std::string shape = t.onnx().Add("Shape", node.name() + "/shape", {t.Plain(node.input(0))});
    const std::string value =
        t.onnx().AddConstant(node.name() + "/value", ops::NumberTensor(node.output_dtype(0), number));
    t.SetPlain(node, t.onnx().Add("Expand", node.name(), {value, shape}));
  }

  static void LayerNorm(OnnxTranslation& t, const Node& node) {
    const std::vector<std::string> inputs = {t.Plain(node.input(0)), t.Plain(node.input(1)), t.Plain(node.input(2))};
    t.SetPlain(node, t.onnx().Add("LayerNormalization", node.name(), inputs,
                                  {{"axis", int64_t{-1}}, {"epsilon", node.attr<float>("epsilon")}}));
  }

  static void Softmax(OnnxTranslation& t, const Node& node) {
    const char* op = node.op_name() == "Softmax" ? "Softmax" : "LogSoftmax";
    t.SetPlain(node, t.onnx().Add(op, node.name(), {t.Plain(node.input(0))}, {{"axis", int64_t{-1}}}));
  }
};

}  // namespace

const OnnxRules& OnnxElementwiseRules() {
  static const OnnxRules rules = [] {
    OnnxRules all = {{"NotEqual", ElementwiseRules::NotEqual},
                     {"Relu6", ElementwiseRules::Relu6},
                     {"ClipByValue", ElementwiseRules::ClipByValue},
                     {"LeakyRelu", ElementwiseRules::LeakyRelu},
                     {"Rsqrt", ElementwiseRules::Rsqrt},
                     {"Square", ElementwiseRules::Square},
                     {"SquaredDifference", ElementwiseRules::SquaredDifference},
                     {"Cast", ElementwiseRules::Cast},
                     {"Select", ElementwiseRules::Select},
                     {"OnesLike", ElementwiseRules::FilledLike},
                     {"ZerosLike", ElementwiseRules::FilledLike},
                     {"LayerNorm", ElementwiseRules::LayerNorm},
                     {"Softmax", ElementwiseRules::Softmax},
                     {"LogSoftmax", ElementwiseRules::Softmax}};
    for (const auto& [op, same] : SameOps()) all.emplace(op, ElementwiseRules::Same);
    return all;
  }();
  return rules;
}

}  // namespace cohort::keras
