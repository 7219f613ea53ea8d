// SavedModel: imports the graph of a SavedModel and runs its restore op, and then the ops that give local variables
// their values.
#include "cohort/checkpoint/saved_model/saved_model.h"

#include <set>
#include <utility>

#include "cohort/checkpoint/saved_model/saved_model_files_internal.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/graph_def.h"
#include "cohort/graph/op_def.h"
#include "cohort/proto/saved_model.pb.h"

namespace cohort::saved_model {
namespace {

const proto::MetaGraphDef& MetaGraphOf(const proto::SavedModel& model, const std::set<std::string>& tags,
                                       const std::string& dir) {
  std::vector<std::string> all;
  for (const proto::MetaGraphDef& meta : model.meta_graphs()) {
    const auto& have = meta.meta_info_def().tags();
    if (std::set<std::string>(have.begin(), have.end()) == tags) return meta;
    all.push_back(StrCat("{", StrJoin(std::vector<std::string>(have.begin(), have.end()), ", "), "}"));
  }
  throw NotFoundError(StrCat("[saved model] expected a graph with the tags {",
                             StrJoin(std::vector<std::string>(tags.begin(), tags.end()), ", "), "} in ", dir,
                             "; its graphs have ", StrJoin(all, ", ")));
}

std::string NodeOf(const std::string& tensor) { return tensor.substr(0, tensor.find(':')); }

Node* OpOf(const Graph& graph, const std::string& name) {
  Node* node = graph.FindNode(name);
  if (node == nullptr)
    throw DataLossError(StrCat("[saved model] expected the op \"", name, "\" in the graph; it has none"));
  return node;
}

// Removes the nodes on which none of `ends` depends. Cohort may lack their ops.
void Prune(const std::vector<std::string>& ends, proto::GraphDef& graph) {
  std::map<std::string, const proto::NodeDef*> by_name;
  for (const proto::NodeDef& node : graph.node()) by_name[node.name()] = &node;
  std::set<std::string> needed;
  std::vector<std::string> open = ends;
  while (!open.empty()) {
    const std::string name = NodeOf(open.back().starts_with('^') ? open.back().substr(1) : open.back());
    open.pop_back();
    const auto it = by_name.find(name);
    if (it == by_name.end() || !needed.insert(name).second) continue;
    open.insert(open.end(), it->second->input().begin(), it->second->input().end());
  }
  proto::GraphDef kept;
  for (proto::NodeDef& node : *graph.mutable_node()) {
    if (needed.count(node.name()) > 0) *kept.add_node() = std::move(node);
  }
  graph.mutable_node()->Swap(kept.mutable_node());
}

// Removes attributes that Cohort's ops lack, if they have the default that the writer's ops give them. A later version
// of TensorFlow may have added them; it does the same when an older one reads its graphs. Also removes the names that
// variables have in messages only.
void DropUnusedAttrs(const proto::OpList& ops, proto::GraphDef& graph) {
  std::map<std::string, std::map<std::string, std::string>> defaults;  // of each op: the attributes, as bytes
  for (const proto::OpDef& op : ops.op()) {
    for (const auto& attr : op.attr()) defaults[op.name()][attr.name()] = attr.default_value().SerializeAsString();
  }
  for (proto::NodeDef& node : *graph.mutable_node()) {
    const OpDef* ours = OpRegistry::Global().Find(node.op());
    if (ours == nullptr) continue;
    if (ours->FindAttr("debug_name") == nullptr) node.mutable_attr()->erase("debug_name");
    for (const auto& [name, value] : defaults[node.op()]) {
      const auto it = node.attr().find(name);
      if (it == node.attr().end() || ours->FindAttr(name) != nullptr) continue;
      if (it->second.SerializeAsString() == value) node.mutable_attr()->erase(name);
    }
  }
}

// Returns the keys as a list for a message.
template <typename Value>
std::string NamesOf(const std::map<std::string, Value>& values) {
  std::vector<std::string> names;
  names.reserve(values.size());
  for (const auto& [name, value] : values) names.push_back(name);
  return names.empty() ? "none" : StrJoin(names, ", ");
}

}  // namespace

SavedModel::SavedModel(const std::string& dir, const std::vector<std::string>& tags, const SessionConfig& config) {
  proto::SavedModel model;
  if (!model.ParseFromString(ReadFile(dir + kFile))) {
    throw DataLossError(StrCat("[saved model] ", dir, kFile, " is not a SavedModel, or is damaged"));
  }
  const proto::MetaGraphDef& meta = MetaGraphOf(model, {tags.begin(), tags.end()}, dir);
  const bool has_values = !meta.saver_def().restore_op_name().empty();
  std::vector<std::string> ends;
  for (const auto& [name, signature] : meta.signature_def()) {
    for (const auto& [key, tensor] : signature.inputs()) ends.push_back(tensor.name());
    for (const auto& [key, tensor] : signature.outputs()) ends.push_back(tensor.name());
  }
  if (has_values) ends.push_back(meta.saver_def().restore_op_name());
  const auto main_op = meta.collection_def().find(kMainOp);
  if (main_op != meta.collection_def().end()) {
    ends.insert(ends.end(), main_op->second.node_list().value().begin(), main_op->second.node_list().value().end());
  }
  proto::GraphDef pruned = meta.graph_def();
  Prune(ends, pruned);
  DropUnusedAttrs(meta.meta_info_def().stripped_op_list(), pruned);
  ImportGraphDef(graph_, pruned.SerializeAsString());
  for (const auto& [name, def] : meta.signature_def()) {
    SavedModelSignature& signature = signatures_[name];
    for (const auto& [key, tensor] : def.inputs()) signature.inputs[key] = graph_.FindOutput(tensor.name());
    for (const auto& [key, tensor] : def.outputs()) signature.outputs[key] = graph_.FindOutput(tensor.name());
    signature.method_name = def.method_name();
  }
  session_ = std::make_unique<Session>(graph_, "", config);
  if (has_values) {
    const Output filename = graph_.FindOutput(meta.saver_def().filename_tensor_name());
    session_->Run({{filename, Tensor::Scalar<std::string>(dir + kValues)}}, {},
                  {OpOf(graph_, meta.saver_def().restore_op_name())});
  }
  if (main_op != meta.collection_def().end()) {
    for (const std::string& op : main_op->second.node_list().value()) session_->Run({}, {}, {OpOf(graph_, op)});
  }
}

SavedModel::~SavedModel() = default;

std::map<std::string, Tensor> SavedModel::Run(const std::map<std::string, Tensor>& inputs,
                                              const std::string& signature) const {
  const auto it = signatures_.find(signature);
  if (it == signatures_.end()) {
    throw NotFoundError(
        StrCat("[saved model] expected one of the signatures ", NamesOf(signatures_), "; got \"", signature, "\""));
  }
  FeedList feeds;
  for (const auto& [name, tensor] : it->second.inputs) {
    const auto given = inputs.find(name);
    if (given != inputs.end()) feeds.emplace_back(tensor, given->second);
  }
  if (feeds.size() != inputs.size() || feeds.size() != it->second.inputs.size()) {
    throw InvalidArgumentError(
        StrCat("[saved model] expected the inputs ", NamesOf(it->second.inputs), "; got ", NamesOf(inputs)));
  }
  std::vector<Output> fetches;
  for (const auto& [name, tensor] : it->second.outputs) fetches.push_back(tensor);
  const RunResults values = session_->Run(feeds, fetches);
  std::map<std::string, Tensor> outputs;
  size_t i = 0;
  for (const auto& [name, tensor] : it->second.outputs) outputs[name] = values[i++];
  return outputs;
}

}  // namespace cohort::saved_model
