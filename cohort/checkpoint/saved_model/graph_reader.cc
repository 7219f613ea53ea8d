// ReadSavedModelGraph: changes the GraphDef of a SavedModel until Cohort can have it, and then imports it.
#include <google/protobuf/stubs/logging.h>

#include <limits>
#include <map>
#include <set>
#include <utility>

#include "cohort/checkpoint/saved_model/graph_reader_internal.h"
#include "cohort/checkpoint/saved_model/saved_model_files_internal.h"
#include "cohort/checkpoint/saved_model/tensorflow_ops.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/graph_def/needed_part.h"
#include "cohort/graph/op_def.h"
#include "cohort/proto/saved_model.pb.h"
#include "cohort/proto/tensor_proto.h"

namespace cohort::saved_model {
namespace {

constexpr char kInitSignature[] = "__saved_model_init_op";
constexpr char kLegacyInitOp[] = "legacy_init_op";

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

Node* OpOf(const Graph& graph, const std::string& name) {
  Node* node = graph.FindNode(name);
  if (node == nullptr)
    throw DataLossError(StrCat("[saved model] expected the op \"", name, "\" in the graph; it has none"));
  return node;
}

using Defaults = std::map<std::string, std::map<std::string, std::string>>;

// Removes attributes that Cohort's ops lack, if they have the default that the writer's ops give them. A later version
// of TensorFlow may have added them; it does the same when an older one reads its graphs. `defaults` has the attributes
// of each op, as bytes. DropLaterAttrs is for graphs that come without the ops of their writer: it knows only usual
// defaults.
void DropWritersDefaults(const Defaults& defaults, proto::NodeDef& node) {
  const OpDef* ours = OpRegistry::Global().Find(node.op());
  if (ours == nullptr) return;
  const auto attrs = defaults.find(node.op());
  if (attrs == defaults.end()) return;
  for (const auto& [name, value] : attrs->second) {
    const auto it = node.attr().find(name);
    if (it == node.attr().end() || ours->FindAttr(name) != nullptr) continue;
    if (it->second.SerializeAsString() == value) node.mutable_attr()->erase(name);
  }
}

void DropWritersDefaults(const proto::OpList& ops, proto::GraphDef& graph) {
  Defaults defaults;
  for (const proto::OpDef& op : ops.op()) {
    for (const auto& attr : op.attr()) defaults[op.name()][attr.name()] = attr.default_value().SerializeAsString();
  }
  for (proto::NodeDef& node : *graph.mutable_node()) DropWritersDefaults(defaults, node);
  for (proto::FunctionDef& function : *graph.mutable_library()->mutable_function()) {
    for (proto::NodeDef& node : *function.mutable_node_def()) DropWritersDefaults(defaults, node);
  }
}

// Makes constants of the nodes that stand for paths of assets.
void FillInAssets(const proto::MetaGraphDef& meta, const std::string& dir, proto::GraphDef& graph) {
  std::map<std::string, std::string> paths;  // by the name of the node
  for (const proto::AssetFileDef& asset : meta.asset_file_def()) {
    const std::string& tensor = asset.tensor_info().name();
    paths[tensor.substr(0, tensor.find(':'))] = StrCat(dir, kAssets, asset.filename());
  }
  for (proto::NodeDef& node : *graph.mutable_node()) {
    const auto path = paths.find(node.name());
    if (path == paths.end()) continue;
    node.set_op("Const");
    node.clear_input();
    node.clear_attr();
    (*node.mutable_attr())["dtype"].set_type(proto::DT_STRING);
    ToProto(Tensor::Scalar(path->second), (*node.mutable_attr())["value"].mutable_tensor());
  }
}

// The ops that give local variables and tables their values. TensorFlow 2 names one in a signature, and TensorFlow 1 in
// a collection.
std::vector<std::string> InitOpsOf(const proto::MetaGraphDef& meta) {
  const auto signature = meta.signature_def().find(kInitSignature);
  if (signature != meta.signature_def().end() && signature->second.outputs().count(kInitSignature) > 0) {
    return {signature->second.outputs().at(kInitSignature).name()};
  }
  for (const char* name : {kMainOp, kLegacyInitOp}) {
    const auto found = meta.collection_def().find(name);
    if (found == meta.collection_def().end()) continue;
    return {found->second.node_list().value().begin(), found->second.node_list().value().end()};
  }
  return {};
}

}  // namespace

ReadGraph ReadSavedModelGraph(std::string_view bytes, const std::string& dir, const std::vector<std::string>& tags,
                              Graph& graph) {
  google::protobuf::LogSilencer quiet;  // errors are thrown and must not be written to stderr
  proto::SavedModel model;
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw DataLossError(StrCat("[saved model] ", dir, kFile, " is not a SavedModel, or is damaged"));
  }
  const proto::MetaGraphDef& meta = MetaGraphOf(model, {tags.begin(), tags.end()}, dir);
  const std::string restore = meta.saver_def().restore_op_name();
  const std::vector<std::string> init = InitOpsOf(meta);
  std::vector<std::string> ends = init;
  if (!restore.empty()) ends.insert(ends.end(), {restore, meta.saver_def().filename_tensor_name()});
  for (const auto& [name, signature] : meta.signature_def()) {
    if (name == kInitSignature) continue;
    for (const auto& [key, tensor] : signature.inputs()) ends.push_back(tensor.name());
    for (const auto& [key, tensor] : signature.outputs()) ends.push_back(tensor.name());
  }
  proto::GraphDef needed = meta.graph_def();
  FillInAssets(meta, dir, needed);
  const InlinedValues inlined = KeepNeededPart(needed, ends, TensorFlowOps());
  DropWritersDefaults(meta.meta_info_def().stripped_op_list(), needed);
  ImportGraphDefMessage(graph, needed, TensorFlowOps());
  ReadGraph result;
  const auto find = [&](const proto::TensorInfo& tensor) { return graph.FindOutput(inlined.Of(tensor.name())); };
  for (const auto& [name, def] : meta.signature_def()) {
    if (name == kInitSignature) continue;
    SavedModelSignature& signature = result.signatures[name];
    for (const auto& [key, tensor] : def.inputs()) signature.inputs[key] = find(tensor);
    for (const auto& [key, tensor] : def.outputs()) signature.outputs[key] = find(tensor);
    signature.method_name = def.method_name();
  }
  if (!restore.empty()) {
    result.restore = OpOf(graph, restore);
    result.filename = graph.FindOutput(meta.saver_def().filename_tensor_name());
  }
  for (const std::string& op : init) result.init.push_back(OpOf(graph, op));
  return result;
}

}  // namespace cohort::saved_model
