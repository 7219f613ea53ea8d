// WriteOwnOpsAsTensorFlows. An op's form is built in a graph of its own, between placeholders that stand for the inputs
// of the op's node. Its nodes then get the names of these inputs and names below that of the node.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cohort/checkpoint/saved_model/tensorflow_form_internal.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/graph_def.h"
#include "cohort/ops/arithmetic.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/unary.h"
#include "cohort/proto/tensor_proto.h"

namespace cohort::saved_model {
namespace {

// The nodes that stand for a node of an own op.
struct SmallOps {
  proto::GraphDef nodes;
  std::vector<std::string> outputs;  // for each output of the node, the name of the node that computes it
};

// Gives the nodes of `form` their names in `given`, and those that it lacks their old names after `prefix`.
void Rename(std::map<std::string, std::string> given, const std::string& prefix, proto::GraphDef& form) {
  for (const proto::NodeDef& node : form.node()) given.emplace(node.name(), StrCat(prefix, node.name()));
  for (proto::NodeDef& node : *form.mutable_node()) {
    node.set_name(given.at(node.name()));
    for (std::string& input : *node.mutable_input()) {
      const size_t colon = input.find(':');  // no tensor of the form has a control input
      std::string to = given.at(input.substr(0, colon));
      if (colon != std::string::npos && to.find(':') == std::string::npos) to += input.substr(colon);
      input = std::move(to);
    }
  }
}

// An op that is written in small ops.
struct WrittenOp {
  std::vector<const char*> dtypes;  // of the inputs: the attributes that have them
  // Adds the small ops for the op's inputs. Returns the first outputs of the op, the first one as a node of its own.
  std::vector<Output> (*add)(const std::vector<Output>& inputs, float epsilon);
};

std::vector<Output> AddBatchNorm(const std::vector<Output>& inputs, float epsilon) {
  const Output &x = inputs[0], &mean = inputs[3], &variance = inputs[4];
  const Output factor = ops::Rsqrt(variance + ops::ScalarLike(variance, epsilon)) * inputs[1];
  const Output y = ops::Cast(x, factor.dtype()) * factor + (inputs[2] - mean * factor);
  return {ops::Identity(ops::Cast(y, x.dtype())), ops::Identity(mean), ops::Identity(variance)};
}

// As ops/layer_norm.cc.
std::vector<Output> AddLayerNorm(const std::vector<Output>& inputs, float epsilon) {
  const Output &x = inputs[0], &scale = inputs[1], &offset = inputs[2];
  const auto mean_of_row = [](Output of) { return ops::Mean(of, {-1}, /*keep_dims=*/true); };
  const Output wide = ops::Cast(x, scale.dtype());
  const Output mean = mean_of_row(wide);
  const Output centred = wide - mean;
  const Output variance = mean_of_row(ops::Square(centred));
  const Output inverse = ops::Rsqrt(variance + ops::ScalarLike(variance, epsilon));
  const Output y = ops::Cast(centred * inverse * scale + offset, x.dtype());
  return {ops::Identity(y), ops::Squeeze(mean, {-1}), ops::Squeeze(inverse, {-1})};
}

// Returns null if the node is written as it is. `read`: the tensors that other nodes read.
const WrittenOp* WrittenOpOf(const proto::NodeDef& node, const std::set<std::string>& read) {
  static const WrittenOp layer_norm = {{"T", "U", "U"}, AddLayerNorm};
  static const WrittenOp batch_norm = {{"T", "U", "U", "U", "U"}, AddBatchNorm};
  if (node.op() == "LayerNorm") return &layer_norm;
  if (node.op() != "FusedBatchNormV3" || node.attr().at("is_training").b()) return nullptr;
  for (const int reserve_space : {3, 4, 5}) {
    if (read.count(StrCat(node.name(), ":", reserve_space)) > 0) return nullptr;
  }
  return &batch_norm;
}

SmallOps FormOf(const proto::NodeDef& node, const WrittenOp& op, const std::string& prefix) {
  std::vector<std::string> inputs, controls;
  for (const std::string& input : node.input()) (input.starts_with('^') ? controls : inputs).push_back(input);
  if (inputs.size() != op.dtypes.size()) {
    throw InvalidArgumentError(StrCat("[saved model] expected ", op.dtypes.size(), " inputs of the node \"",
                                      node.name(), "\" of the op ", node.op(), "; got ", inputs.size()));
  }
  const auto shapes = node.attr().find("_output_shapes");
  const Shape shape = shapes == node.attr().end() ? Shape::UnknownRank() : FromProto(shapes->second.list().shape(0));
  const Shape channels = {shape.has_rank() ? shape.dim(shape.rank() - 1) : -1};

  Graph graph;
  std::vector<Output> from;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto dtype = static_cast<DType>(node.attr().at(op.dtypes[i]).type());
    from.push_back(ops::Placeholder(graph, dtype, i == 0 ? shape : channels));
  }
  const std::vector<Output> to = op.add(from, node.attr().at("epsilon").f());
  SmallOps form;
  if (!form.nodes.ParseFromString(SerializeGraphDef(graph, {.output_shapes = true}))) {
    throw InternalError(StrCat("[saved model] the form of ", node.op(), " cannot be read back"));
  }
  std::map<std::string, std::string> names = {{to[0].node->name(), node.name()}};
  for (size_t i = 0; i < inputs.size(); ++i) names[from[i].node->name()] = inputs[i];
  auto& nodes = *form.nodes.mutable_node();
  const auto is_placeholder = [](const proto::NodeDef& added) { return added.op() == "Placeholder"; };
  Rename(names, prefix, form.nodes);
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(), is_placeholder), nodes.end());
  for (proto::NodeDef& added : nodes) {
    for (const std::string& control : controls) added.add_input(control);
  }
  form.outputs = {node.name()};
  for (size_t i = 1; i < to.size(); ++i) form.outputs.push_back(prefix + to[i].node->name());
  return form;
}

// Returns a prefix below the name of a node which no name in `names` has.
std::string PrefixBelow(const std::string& node, const std::set<std::string>& names) {
  for (std::string prefix = node + "/";; prefix.insert(prefix.size() - 1, "_")) {
    const auto next = names.lower_bound(prefix);
    if (next == names.end() || !next->starts_with(prefix)) return prefix;
  }
}

}  // namespace

std::map<std::string, std::string> WriteOwnOpsAsTensorFlows(proto::GraphDef& graph) {
  std::set<std::string> names, read;
  for (const proto::NodeDef& node : graph.node()) {
    names.insert(node.name());
    read.insert(node.input().begin(), node.input().end());
  }
  std::map<std::string, std::string> new_names;  // see the header
  proto::GraphDef written;
  for (proto::NodeDef& node : *graph.mutable_node()) {
    const WrittenOp* op = WrittenOpOf(node, read);
    if (op == nullptr) {
      *written.add_node() = std::move(node);
      continue;
    }
    SmallOps form = FormOf(node, *op, PrefixBelow(node.name(), names));
    for (size_t i = 1; i < form.outputs.size(); ++i) new_names[StrCat(node.name(), ":", i)] = form.outputs[i];
    for (proto::NodeDef& added : *form.nodes.mutable_node()) {
      names.insert(added.name());
      *written.add_node() = std::move(added);
    }
  }
  for (proto::NodeDef& node : *written.mutable_node()) {
    for (std::string& input : *node.mutable_input()) {
      const auto it = new_names.find(input);
      if (it != new_names.end()) input = it->second;
    }
  }
  graph.mutable_node()->Swap(written.mutable_node());
  return new_names;
}

}  // namespace cohort::saved_model
