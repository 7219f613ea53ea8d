// WriteOwnOpsAsTensorFlows. An op's form is built in a graph of its own, between placeholders that stand for the inputs
// of the op's node. Its nodes then get the names of these inputs and names below that of the node.
#include <farmhash.h>

#include <algorithm>
#include <cstdint>
#include <limits>
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
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/lookup.h"
#include "cohort/ops/reduction.h"
#include "cohort/ops/select.h"
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
  // Adds the small ops for the op's inputs and attributes. Returns the first outputs of the op, the first one as a node
  // of its own.
  std::vector<Output> (*add)(const std::vector<Output>& inputs, const proto::NodeDef& node);
};

float EpsilonOf(const proto::NodeDef& node) { return node.attr().at("epsilon").f(); }

std::vector<Output> AddBatchNorm(const std::vector<Output>& inputs, const proto::NodeDef& node) {
  const Output &x = inputs[0], &mean = inputs[3], &variance = inputs[4];
  const Output factor = ops::Rsqrt(variance + ops::ScalarLike(variance, EpsilonOf(node))) * inputs[1];
  const Output y = ops::Cast(x, factor.dtype()) * factor + (inputs[2] - mean * factor);
  return {ops::Identity(ops::Cast(y, x.dtype())), ops::Identity(mean), ops::Identity(variance)};
}

// As ops/layer_norm.cc.
std::vector<Output> AddLayerNorm(const std::vector<Output>& inputs, const proto::NodeDef& node) {
  const Output &x = inputs[0], &scale = inputs[1], &offset = inputs[2];
  const auto mean_of_row = [](Output of) { return ops::Mean(of, {-1}, /*keep_dims=*/true); };
  const Output wide = ops::Cast(x, scale.dtype());
  const Output mean = mean_of_row(wide);
  const Output centred = wide - mean;
  const Output variance = mean_of_row(ops::Square(centred));
  const Output inverse = ops::Rsqrt(variance + ops::ScalarLike(variance, EpsilonOf(node)));
  const Output y = ops::Cast(centred * inverse * scale + offset, x.dtype());
  return {ops::Identity(y), ops::Squeeze(mean, {-1}), ops::Squeeze(inverse, {-1})};
}

constexpr int64_t kHashes = std::numeric_limits<int64_t>::max();

int64_t KeyOf(int64_t token) { return token; }
int64_t KeyOf(const std::string& token) {  // as StringToHashBucketFast
  return static_cast<int64_t>(util::Fingerprint64(token.data(), token.size()) % kHashes);
}

// A vocabulary in the order of its keys, so that a key is found by a binary search. TensorFlow's hash tables would have
// to be initialized first. The keys of strings are their hashes.
template <typename T>
std::vector<Output> AddSearch(const Output& values, const Tensor& vocabulary, int64_t unknown, bool fails) {
  Graph& graph = values.graph();
  const T* tokens = vocabulary.data<T>();
  const int64_t n = vocabulary.num_elements();
  std::vector<std::pair<int64_t, int64_t>> order;  // key and place
  for (int64_t i = 0; i < n; ++i) order.emplace_back(KeyOf(tokens[i]), i);
  std::sort(order.begin(), order.end());
  std::vector<int64_t> keys, places;
  std::vector<T> sorted;
  for (const auto& [key, place] : order) {
    if (!keys.empty() && keys.back() == key) {
      throw UnimplementedError(StrCat("[saved model] expected a vocabulary whose tokens have different hashes; \"",
                                      sorted.back(), "\" and \"", tokens[place], "\" have the same"));
    }
    keys.push_back(key);
    places.push_back(place);
    sorted.push_back(tokens[place]);
  }
  const Output flat = ops::Reshape(values, {-1});
  Output key = flat;
  if constexpr (std::is_same_v<T, std::string>) key = ops::StringToHashBucketFast(flat, kHashes);
  const Output found = ops::SearchSorted(ops::Const(graph, keys, Shape{1, n}), ops::Reshape(key, {1, -1}));
  const Output at = ops::Minimum(ops::Reshape(found, {-1}), n - 1);
  const Output is_there = ops::Equal(ops::Gather(ops::Const(graph, sorted), at), flat);
  // If unknown values are errors, they get a place that does not exist, for which the next Gather fails.
  const Output place = ops::SelectV2(is_there, at, ops::Const(graph, fails ? n : int64_t{0}));
  const Output known = ops::Gather(ops::Const(graph, places), place);
  const Output index = fails ? known : ops::SelectV2(is_there, known, ops::Const(graph, unknown));
  return {ops::Reshape(index, ops::ShapeOf(values))};
}

std::vector<Output> AddVocabularyLookup(const std::vector<Output>& inputs, const proto::NodeDef& node) {
  const Tensor vocabulary = FromProto(node.attr().at("vocabulary").tensor());
  const int64_t unknown = node.attr().at("default_value").i();
  const bool fails = node.attr().at("fail_unknown").b();
  if (vocabulary.num_elements() == 0 && fails) {
    throw UnimplementedError(StrCat("[saved model] expected a vocabulary with an entry; that of the node \"",
                                    node.name(), "\" is empty, so that every value is an error"));
  }
  if (vocabulary.num_elements() == 0) {
    return {ops::Fill(ops::ShapeOf(inputs[0]), ops::Const(inputs[0].graph(), unknown))};
  }
  if (vocabulary.dtype() == DType::kString) return AddSearch<std::string>(inputs[0], vocabulary, unknown, fails);
  return AddSearch<int64_t>(inputs[0], vocabulary, unknown, fails);
}

// Returns null if the node is written as it is. `read`: the tensors that other nodes read.
const WrittenOp* WrittenOpOf(const proto::NodeDef& node, const std::set<std::string>& read) {
  static const WrittenOp layer_norm = {{"T", "U", "U"}, AddLayerNorm};
  static const WrittenOp batch_norm = {{"T", "U", "U", "U", "U"}, AddBatchNorm};
  static const WrittenOp vocabulary = {{"T"}, AddVocabularyLookup};
  if (node.op() == "LayerNorm") return &layer_norm;
  if (node.op() == "VocabularyLookup") return &vocabulary;
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
  const std::vector<Output> to = op.add(from, node);
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
