// WriteSavedModel adds a saver to the graph (SaveV2, RestoreV2), cuts out what is needed, and writes it with the values
// of a checkpoint. SavedModel imports such a graph and runs its restore op. saved_model.pb has one MetaGraphDef: the
// graph, the names of the saver's nodes, collections of variables, and the signatures.
#include "cohort/checkpoint/saved_model/saved_model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cohort/checkpoint/ops.h"
#include "cohort/checkpoint/saved_model/tensorflow_form_internal.h"
#include "cohort/checkpoint/stored_variable.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/graph_def.h"
#include "cohort/graph/op_def.h"
#include "cohort/graph/scopes.h"
#include "cohort/ops/array.h"
#include "cohort/ops/control.h"
#include "cohort/ops/state.h"
#include "cohort/proto/saved_model.pb.h"
#include "cohort/proto/tensor_proto.h"

namespace cohort::saved_model {
namespace {

constexpr const char* kFile = "/saved_model.pb";
constexpr const char* kValues = "/variables/variables";
constexpr const char* kMainOp = "saved_model_main_op";  // the collection that names the op to run after the values

// Ops that TensorFlow does not have. tests/interop/test_saved_model.py compares the list with TensorFlow.
constexpr std::string_view kOwnOps[] = {"AccumulatorNumStale",
                                        "ChiefRecord",
                                        "ChiefRecordHold",
                                        "ChiefRecordRead",
                                        "CollectiveBarrier",
                                        "CollectiveReduceScatter",
                                        "DatasetFromDescription",
                                        "LayerNorm",
                                        "LayerNormGrad",
                                        "QueueFailSession",
                                        "QueueReset",
                                        "ResourceApplyKerasAdagrad",
                                        "ResourceApplyWeightDecay",
                                        "ResourceSparseApplyKerasAdagrad",
                                        "StepClock",
                                        "StepClockJoin",
                                        "StepClockTakeStaleness",
                                        "StepClockTick"};

// The nodes that save and restore the variables, with TensorFlow's names.
struct SaverNodes {
  Output filename;
  Output save;
  Node* restore;
};

std::vector<const VariableInfo*> Saved(const Graph& graph) {
  std::vector<const VariableInfo*> saved;
  for (const VariableInfo* variable : graph.variables()) {
    if (!variable->local) saved.push_back(variable);
  }
  std::sort(saved.begin(), saved.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  return saved;
}

SaverNodes AddSaver(Graph& graph, const std::vector<const VariableInfo*>& variables) {
  const ControlDependencies none(graph, nullptr);
  const NameScope scope(graph, "save");
  std::vector<std::string> names;
  std::vector<Output> values;
  std::vector<DType> dtypes;
  for (const VariableInfo* variable : variables) {
    names.push_back(variable->name);
    values.push_back(variable->value);
    dtypes.push_back(variable->dtype);
  }
  const Output filename = ops::PlaceholderWithDefault(
      ops::Const(graph, Tensor::Scalar<std::string>("model"), "filename"), Shape(), "Const");
  const Output keys = ops::Const(graph, Tensor::Vector(names), "tensor_names");
  const Output slices = ops::Const(graph, Tensor::Vector(std::vector<std::string>(names.size())), "shape_and_slices");
  Output saved;
  {
    const ControlDependencies after(graph, {ops::SaveV2(filename, keys, slices, values)});
    saved = ops::Identity(filename, "control_dependency");
  }
  const std::vector<Output> restored = ops::RestoreV2(filename, keys, slices, dtypes);
  std::vector<Node*> assigned;
  for (size_t i = 0; i < variables.size(); ++i) {
    assigned.push_back(ops::AssignVariableOp(variables[i]->handle, restored[i]));
  }
  return {filename, saved, ops::Group(graph, assigned, "restore_all")};
}

// Returns the names of the nodes on which `ends` depend, and of `ends`.
std::set<std::string> NeededBy(const std::vector<Node*>& ends) {
  std::set<std::string> names;
  std::vector<const Node*> open(ends.begin(), ends.end());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!names.insert(node->name()).second) continue;
    for (const Output& input : node->inputs()) open.push_back(input.node);
    for (const Node* control : node->control_inputs()) open.push_back(control);
  }
  return names;
}

// `renamed`: tensors that other nodes compute in the file, each as its only output, with the names of these nodes.
void SetInfo(const Output& tensor, const std::map<std::string, std::string>& renamed, proto::TensorInfo* out) {
  const auto other = renamed.find(tensor.name());
  out->set_name(other == renamed.end() ? tensor.name() : StrCat(other->second, ":0"));
  out->set_dtype(static_cast<proto::DataType>(tensor.dtype()));
  ToProto(tensor.shape(), out->mutable_tensor_shape());
}

void AddVariables(const std::vector<const VariableInfo*>& variables, proto::MetaGraphDef& meta) {
  auto& collections = *meta.mutable_collection_def();
  for (const VariableInfo* variable : variables) {
    proto::VariableDef def;
    def.set_variable_name(variable->handle.name());
    def.set_initializer_name(variable->initializer->name());
    def.set_snapshot_name(variable->value.name());
    def.set_initial_value_name(variable->initial_value.name());
    def.set_is_resource(true);
    def.set_trainable(variable->trainable);
    collections["variables"].mutable_bytes_list()->add_value(def.SerializeAsString());
    if (variable->trainable) {
      collections["trainable_variables"].mutable_bytes_list()->add_value(def.SerializeAsString());
    }
  }
}

// Throws UnimplementedError if TensorFlow does not have the op. `where` says which node it is.
void CheckForm(const std::string& op, const std::string& where) {
  if (HasTensorFlowForm(op)) return;
  throw UnimplementedError(StrCat("[saved model] the op ", op, " of ", where,
                                  " has no TensorFlow form, so the model cannot be exported as a SavedModel"));
}

void AddCalled(const proto::NodeDef& node, std::vector<std::string>& functions) {
  for (const auto& [name, value] : node.attr()) {
    if (value.has_func()) functions.push_back(value.func().name());
    for (const proto::NameAttrList& function : value.list().func()) functions.push_back(function.name());
  }
}

// Adds the functions that `open`, and what they call, name.
void AddFunctions(std::vector<std::string> open, const proto::FunctionDefLibrary& all, proto::FunctionDefLibrary* out) {
  std::map<std::string, const proto::FunctionDef*> by_name;
  for (const proto::FunctionDef& function : all.function()) by_name[function.signature().name()] = &function;
  std::set<std::string> called;
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (by_name.count(name) == 0 || !called.insert(name).second) continue;
    for (const proto::NodeDef& node : by_name[name]->node_def()) {
      CheckForm(node.op(), StrCat("the node \"", node.name(), "\" in the function \"", name, "\""));
      AddCalled(node, open);
    }
  }
  for (const std::string& name : called) *out->add_function() = *by_name[name];
}

// Writes the needed nodes, and what they call. Returns the names that tensors of the graph have in `out`, where they
// are others.
std::map<std::string, std::string> SetGraph(const Graph& graph, const std::set<std::string>& needed,
                                            proto::GraphDef* out) {
  proto::GraphDef all;
  if (!all.ParseFromString(SerializeGraphDef(graph, {.output_shapes = true}))) {
    throw InternalError("[saved model] the graph cannot be read back");
  }
  for (proto::NodeDef& node : *all.mutable_node()) {
    if (needed.count(node.name()) == 0) continue;
    node.clear_device();
    *out->add_node() = std::move(node);
  }
  const std::map<std::string, std::string> renamed = WriteOwnOpsAsTensorFlows(*out);
  std::vector<std::string> functions;
  for (const proto::NodeDef& node : out->node()) {
    CheckForm(node.op(), StrCat("the node \"", node.name(), "\""));
    AddCalled(node, functions);
  }
  AddFunctions(std::move(functions), all.library(), out->mutable_library());
  *out->mutable_versions() = all.versions();
  return renamed;
}

// Returns bytes that are equal for equal messages.
std::string BytesOf(const proto::SavedModel& model) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  {
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    model.SerializeToCodedStream(&coded);
  }
  return bytes;
}

void CopyValues(const std::vector<const VariableInfo*>& variables, const std::string& checkpoint,
                const std::string& prefix) {
  const BundleReader reader(checkpoint);
  BundleWriter writer(prefix);
  for (const VariableInfo* variable : variables) {
    const Tensor value = StoredVariable::In(reader, *variable).Read(reader);
    if (value.dtype() != variable->dtype || !value.shape().IsCompatibleWith(variable->shape)) {
      throw InvalidArgumentError(StrCat("[saved model] expected ", variable->name, " to be ", variable->dtype,
                                        variable->shape, "; got ", value.dtype(), value.shape(), " in the checkpoint ",
                                        checkpoint));
    }
    writer.Add(variable->name, value);
  }
  writer.Finish();
}

std::vector<Node*> NodesOf(const Graph& graph, const std::map<std::string, SavedModelSignature>& signatures) {
  std::vector<Node*> nodes;
  for (const auto& [name, signature] : signatures) {
    for (const auto* tensors : {&signature.inputs, &signature.outputs}) {
      for (const auto& [key, tensor] : *tensors) {
        if (!tensor.valid() || &tensor.graph() != &graph) {
          throw InvalidArgumentError(StrCat("[saved model] expected tensors of the exported graph in the signature \"",
                                            name, "\"; \"", key, "\" is none"));
        }
        nodes.push_back(tensor.node);
      }
    }
  }
  if (!nodes.empty()) return nodes;
  throw InvalidArgumentError("[saved model] expected a signature with inputs and outputs; got none");
}

}  // namespace

bool HasTensorFlowForm(std::string_view op) {
  return !op.starts_with('_') && std::find(std::begin(kOwnOps), std::end(kOwnOps), op) == std::end(kOwnOps);
}

void WriteSavedModel(Graph& graph, const std::map<std::string, SavedModelSignature>& signatures,
                     const std::string& checkpoint, const std::string& dir) {
  std::vector<Node*> ends = NodesOf(graph, signatures);
  proto::SavedModel model;
  model.set_saved_model_schema_version(1);
  proto::MetaGraphDef& meta = *model.add_meta_graphs();
  meta.mutable_meta_info_def()->add_tags(kServingTag);
  const std::vector<const VariableInfo*> saved = Saved(graph);
  std::vector<Node*> local;
  for (const VariableInfo* variable : graph.variables()) {
    // A variable that stands for parts has no initializer.
    if (variable->local && variable->initializer != nullptr) local.push_back(variable->initializer);
  }
  if (!saved.empty()) {
    const SaverNodes saver = AddSaver(graph, saved);
    meta.mutable_saver_def()->set_filename_tensor_name(saver.filename.name());
    meta.mutable_saver_def()->set_save_tensor_name(saver.save.name());
    meta.mutable_saver_def()->set_restore_op_name(saver.restore->name());
    meta.mutable_saver_def()->set_max_to_keep(5);
    meta.mutable_saver_def()->set_version(proto::SaverDef::V2);
    ends.insert(ends.end(), {saver.save.node, saver.restore});
    for (const VariableInfo* variable : saved) ends.push_back(variable->initializer);
    AddVariables(saved, meta);
  }
  if (!local.empty()) {
    ends.push_back(ops::Group(graph, local, "saved_model_main_op"));
    (*meta.mutable_collection_def())[kMainOp].mutable_node_list()->add_value(ends.back()->name());
  }
  const auto renamed = SetGraph(graph, NeededBy(ends), meta.mutable_graph_def());
  for (const auto& [name, signature] : signatures) {
    proto::SignatureDef& def = (*meta.mutable_signature_def())[name];
    for (const auto& [key, tensor] : signature.inputs) SetInfo(tensor, renamed, &(*def.mutable_inputs())[key]);
    for (const auto& [key, tensor] : signature.outputs) SetInfo(tensor, renamed, &(*def.mutable_outputs())[key]);
    def.set_method_name(signature.method_name);
  }
  CreateDirectories(dir + "/variables");
  if (!saved.empty()) CopyValues(saved, checkpoint, dir + kValues);
  WriteFileAtomically(dir + kFile, BytesOf(model));
}

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
