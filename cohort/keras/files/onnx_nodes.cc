#include "cohort/keras/files/onnx_nodes.h"

#include <optional>
#include <set>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/constant_value.h"
#include "cohort/keras/files/onnx_rules.h"

namespace cohort::keras {

int OnnxTranslation::Uses(const Output& output) const {
  const auto found = uses_.find(Key(output));
  return found == uses_.end() ? 0 : found->second;
}

const OnnxTranslation::NamedTensor* OnnxTranslation::Variable(const Output& handle) const {
  const auto found = variables_.find(handle.node);
  return found == variables_.end() ? nullptr : &found->second;
}

Tensor OnnxTranslation::Constant(const Output& output) const {
  if (output.node->op_name() == "ReadVariableOp") {
    if (const NamedTensor* variable = Variable(output.node->input(0))) return variable->value;
  }
  if (output.node->op_name() == "Identity") return Constant(output.node->input(0));
  if (output.node->op_name() == "Reshape" || output.node->op_name() == "ExpandDims") {
    const Tensor value = Constant(output.node->input(0));
    if (value.defined() && output.shape().IsFullyDefined()) return value.Reshaped(output.shape());
  }
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
    value.plain =
        onnx_.Add("Transpose", value.nchw + "/nhwc", {value.nchw}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  }
  return value.plain;
}

std::string OnnxTranslation::Nchw(const Output& output) {
  Value& value = values_.at(Key(output));
  if (value.nchw.empty()) {
    value.nchw =
        onnx_.Add("Transpose", value.plain + "/nchw", {value.plain}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  }
  return value.nchw;
}

bool OnnxTranslation::OnlyNchw(const Output& output) const {
  const Value& value = values_.at(Key(output));
  return value.plain.empty() && !value.nchw.empty();
}

void OnnxTranslation::AddNode(const Node& node) {
  for (const OnnxRules* rules : {&OnnxElementwiseRules(), &OnnxArrayRules(), &OnnxImageRules()}) {
    const auto rule = rules->find(node.op_name());
    if (rule == rules->end()) continue;
    rule->second(*this, node);
    return;
  }
  throw UnimplementedError(StrCat("[keras/onnx] expected ops that have a form in ONNX; got ", node.Describe()));
}

void OnnxTranslation::Add(const std::vector<Output>& outputs) {
  if (outputs.empty()) return;
  // The nodes that the outputs need, with their values if they are constants. What a constant was computed from is not
  // needed.
  std::map<const Node*, std::optional<Tensor>> needed;
  std::vector<const Node*> open;
  open.reserve(outputs.size());
  for (const Output& output : outputs) open.push_back(output.node);
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (values_.count({node, 0}) > 0 || needed.count(node) > 0) continue;
    std::optional<Tensor>& constant = needed[node];
    if (node->num_outputs() == 1) constant = ConstantValue(node->output(0));
    if (constant) continue;
    for (const Output& input : node->inputs()) {
      ++uses_[Key(input)];
      open.push_back(input.node);
    }
  }
  for (const Output& output : outputs) ++uses_[Key(output)];
  for (const Node* node : outputs[0].graph().nodes()) {
    const auto found = needed.find(node);
    if (found == needed.end() || node->op_name() == "VarHandleOp") continue;
    if (found->second) {
      SetPlain(*node, onnx_.AddConstant(node->name(), *found->second));
    } else {
      AddNode(*node);
    }
  }
}

}  // namespace cohort::keras
