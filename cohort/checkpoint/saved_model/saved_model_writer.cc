// WriteContents cuts out of the graph what the signatures and the variables need, adds the nodes of a saver (SaveV2,
// RestoreV2), and writes it with the values. saved_model.pb has one MetaGraphDef: the graph, the names of the saver's
// nodes, collections of variables, and the signatures. The nodes that are added are only in the file: they are made in
// a graph of their own, in which stand-ins have the names of the variables' nodes. Save and WriteSavedModel say where
// the values come from.
#include "cohort/checkpoint/saved_model/saved_model_writer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cohort/checkpoint/ops.h"
#include "cohort/checkpoint/saved_model/export_folder.h"
#include "cohort/checkpoint/saved_model/saved_model_files_internal.h"
#include "cohort/checkpoint/saved_model/tensorflow_form_internal.h"
#include "cohort/checkpoint/stored_variable.h"
#include "cohort/checkpoint/tensor_bundle.h"
#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/graph_def.h"
#include "cohort/graph/scopes.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/state.h"
#include "cohort/proto/saved_model.pb.h"
#include "cohort/proto/tensor_proto.h"

namespace cohort::saved_model {
namespace {

using Variables = std::vector<const VariableInfo*>;

// Values are read in groups of this many bytes, or of one variable if it is larger.
constexpr int64_t kGroupBytes = int64_t{64} << 20;

// Ops that TensorFlow does not have. tests/interop/test_saved_model.py compares the list with TensorFlow.
constexpr std::string_view kOwnOps[] = {"AccumulatorNumStale",
                                        "ChiefRecord",
                                        "ChiefRecordHold",
                                        "ChiefRecordRead",
                                        "CollectiveBarrier",
                                        "CollectiveReduceScatter",
                                        "DatasetFromDescription",
                                        "ImageProjectiveTransformV3Grad",
                                        "LayerNorm",
                                        "LayerNormGrad",
                                        "QueueFailSession",
                                        "QueueReset",
                                        "ResourceApplyKerasAdagrad",
                                        "ResourceApplyWeightDecay",
                                        "ResourceSparseApplyAdam",
                                        "ResourceSparseApplyKerasAdagrad",
                                        "StepClock",
                                        "StepClockJoin",
                                        "StepClockTakeStaleness",
                                        "StepClockTick",
                                        "VocabularyLookup"};

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

// The variables that signatures need.
struct Needed {
  Variables saved;           // those that are not local, sorted by name
  std::vector<Node*> local;  // the initializers of the local ones, in the order of the graph
};

void SortByName(Variables& variables) {
  std::sort(variables.begin(), variables.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
}

// The initial value of a local variable may need other variables, so the search ends when it finds no further one.
Needed NeededOf(const Graph& graph, std::vector<Node*> ends) {
  while (true) {
    const std::set<std::string> names = NeededBy(ends);
    Needed needed;
    for (const VariableInfo* variable : graph.variables()) {
      // A variable that stands for parts has neither a handle nor an initializer.
      if (!variable->handle.valid() || names.count(variable->handle.node->name()) == 0) continue;
      if (!variable->local) needed.saved.push_back(variable);
      if (variable->local && variable->initializer != nullptr) needed.local.push_back(variable->initializer);
    }
    SortByName(needed.saved);
    const size_t before = ends.size();
    for (Node* initializer : needed.local) {
      if (names.count(initializer->name()) == 0) ends.push_back(initializer);
    }
    if (ends.size() == before) return needed;
  }
}

// Returns `base`, or `base` with a number behind it: a name such that no name in the graph is this one or below it.
std::string FreeName(const proto::GraphDef& graph, const std::string& base) {
  std::set<std::string> taken;
  for (const proto::NodeDef& node : graph.node()) taken.insert(node.name().substr(0, node.name().find('/')));
  std::string name = base;
  for (int i = 1; taken.count(name) > 0; ++i) name = StrCat(base, "_", i);
  return name;
}

// Adds the nodes that save and restore the variables to the graph of `meta`, with TensorFlow's names, and says in
// `meta` which they are.
void AddSaver(const Variables& variables, proto::MetaGraphDef& meta) {
  Graph graph;
  std::set<std::string> stand_ins;
  std::vector<Output> handles, values;
  for (const VariableInfo* variable : variables) {
    const std::string &handle = variable->handle.node->name(), &value = variable->value.node->name();
    handles.push_back(ops::VarHandleOp(graph, variable->dtype, variable->shape, "", "", handle));
    values.push_back(ops::Placeholder(graph, variable->dtype, variable->shape, value));
    stand_ins.insert({handle, value});
  }
  const NameScope scope(graph, FreeName(meta.graph_def(), "save"));
  std::vector<std::string> names;
  std::vector<DType> dtypes;
  for (const VariableInfo* variable : variables) {
    names.push_back(variable->name);
    dtypes.push_back(variable->dtype);
  }
  const Output filename = ops::PlaceholderWithDefault(
      ops::Const(graph, Tensor::Scalar<std::string>("model"), "filename"), Shape(), "Const");
  const Output keys = ops::Const(graph, Tensor::Vector(names), "tensor_names");
  const Output slices = ops::Const(graph, Tensor::Vector(std::vector<std::string>(names.size())), "shape_and_slices");
  {
    const ControlDependencies after(graph, {ops::SaveV2(filename, keys, slices, values)});
    meta.mutable_saver_def()->set_save_tensor_name(ops::Identity(filename, "control_dependency").name());
  }
  const std::vector<Output> restored = ops::RestoreV2(filename, keys, slices, dtypes);
  std::vector<Node*> assigned;
  for (size_t i = 0; i < variables.size(); ++i) assigned.push_back(ops::AssignVariableOp(handles[i], restored[i]));
  meta.mutable_saver_def()->set_restore_op_name(ops::Group(graph, assigned, "restore_all")->name());
  meta.mutable_saver_def()->set_filename_tensor_name(filename.name());
  meta.mutable_saver_def()->set_max_to_keep(5);
  meta.mutable_saver_def()->set_version(proto::SaverDef::V2);
  proto::GraphDef added;
  if (!added.ParseFromString(SerializeGraphDef(graph, {.output_shapes = true}))) {
    throw InternalError("[saved model] the saver's nodes cannot be read back");
  }
  for (proto::NodeDef& node : *added.mutable_node()) {
    if (stand_ins.count(node.name()) == 0) *meta.mutable_graph_def()->add_node() = std::move(node);
  }
}

// Adds an op that runs the initializers, and names it in `meta`.
void AddMainOp(const std::vector<Node*>& initializers, proto::MetaGraphDef& meta) {
  const std::string name = FreeName(meta.graph_def(), kMainOp);
  proto::NodeDef& node = *meta.mutable_graph_def()->add_node();
  node.set_name(name);
  node.set_op("NoOp");
  for (const Node* initializer : initializers) node.add_input(StrCat("^", initializer->name()));
  (*meta.mutable_collection_def())[kMainOp].mutable_node_list()->add_value(name);
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
  std::map<std::string, std::string> renamed = WriteOwnOpsAsTensorFlows(*out);
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

void WriteValues(const Contents& contents, const std::string& prefix) {
  BundleWriter writer(prefix);
  Variables group;
  int64_t bytes = 0;
  const auto flush = [&] {
    const std::vector<Tensor> values = contents.read(group);
    for (size_t i = 0; i < group.size(); ++i) writer.Add(group[i]->name, values.at(i));
    group.clear();
    bytes = 0;
  };
  for (const VariableInfo* variable : contents.variables) {
    const bool known = variable->shape.IsFullyDefined() && variable->dtype != DType::kString;
    const int64_t size =
        known ? variable->shape.num_elements() * static_cast<int64_t>(DTypeSize(variable->dtype)) : kGroupBytes;
    if (!group.empty() && bytes + size > kGroupBytes) flush();
    group.push_back(variable);
    bytes += size;
  }
  if (!group.empty()) flush();
  writer.Finish();
}

std::vector<Node*> NodesOf(const Graph& graph, const Signatures& signatures) {
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

Tensor ValueIn(const BundleReader& reader, const VariableInfo& variable) {
  const StoredVariable stored = StoredVariable::In(reader, variable);
  const BundleEntry& entry = reader.Find(stored.name);
  if (IsReadableAs(entry.dtype(), variable.dtype) && stored.shape.IsCompatibleWith(entry.shape)) {
    return stored.Read(reader, variable.dtype);
  }
  throw InvalidArgumentError(StrCat("[saved model] expected ", stored.name, " to be ", variable.dtype, stored.shape,
                                    "; got ", entry.dtype(), entry.shape, " in the checkpoint ", reader.prefix()));
}

}  // namespace

bool HasTensorFlowForm(std::string_view op) {
  return !op.starts_with('_') && std::find(std::begin(kOwnOps), std::end(kOwnOps), op) == std::end(kOwnOps);
}

Variables SavedVariables(const Graph& graph) {
  Variables saved;
  for (const VariableInfo* variable : graph.variables()) {
    if (!variable->local) saved.push_back(variable);
  }
  SortByName(saved);
  return saved;
}

Variables NeededVariables(const Graph& graph, const Signatures& signatures) {
  return NeededOf(graph, NodesOf(graph, signatures)).saved;
}

void WriteContents(const Contents& contents, const std::string& dir) {
  std::vector<Node*> ends = NodesOf(contents.graph, contents.signatures);
  const std::vector<Node*> local = NeededOf(contents.graph, ends).local;
  if (contents.tags.empty()) throw InvalidArgumentError("[saved model] expected a tag; got none");
  proto::SavedModel model;
  model.set_saved_model_schema_version(1);
  proto::MetaGraphDef& meta = *model.add_meta_graphs();
  for (const std::string& tag : contents.tags) meta.mutable_meta_info_def()->add_tags(tag);
  ends.insert(ends.end(), local.begin(), local.end());
  for (const VariableInfo* variable : contents.variables) {
    ends.insert(ends.end(), {variable->initializer, variable->value.node});
  }
  const auto renamed = SetGraph(contents.graph, NeededBy(ends), meta.mutable_graph_def());
  if (!contents.variables.empty()) {
    AddSaver(contents.variables, meta);
    AddVariables(contents.variables, meta);
  }
  if (!local.empty()) AddMainOp(local, meta);
  for (const auto& [name, signature] : contents.signatures) {
    proto::SignatureDef& def = (*meta.mutable_signature_def())[name];
    for (const auto& [key, tensor] : signature.inputs) SetInfo(tensor, renamed, &(*def.mutable_inputs())[key]);
    for (const auto& [key, tensor] : signature.outputs) SetInfo(tensor, renamed, &(*def.mutable_outputs())[key]);
    def.set_method_name(signature.method_name);
  }
  CreateDirectories(dir + "/variables");
  if (!contents.variables.empty()) WriteValues(contents, dir + kValues);
  WriteFileAtomically(dir + kFile, BytesOf(model));
}

void ExportContents(const Contents& contents, const std::string& export_dir) {
  ExportFolder made = NewExportFolder(export_dir);
  WriteContents(contents, made.temporary());
  made.Publish();
}

void Save(Session& session, const std::string& export_dir, const Signatures& signatures, const SaveOptions& options) {
  const Graph& graph = session.graph();
  ExportContents({.graph = graph,
                  .signatures = signatures,
                  .tags = options.tags,
                  .variables = NeededVariables(graph, signatures),
                  .read =
                      [&session](const Variables& variables) {
                        std::vector<Output> values;
                        for (const VariableInfo* variable : variables) values.push_back(variable->value);
                        return session.MakeCallable({}, values)({}).values();
                      }},
                 export_dir);
}

void SimpleSave(Session& session, const std::string& export_dir, const std::map<std::string, Output>& inputs,
                const std::map<std::string, Output>& outputs) {
  Save(session, export_dir, {{kDefaultSignature, {.inputs = inputs, .outputs = outputs}}});
}

void WriteSavedModel(const Graph& graph, const Signatures& signatures, const std::string& checkpoint,
                     const std::string& dir) {
  Variables variables = SavedVariables(graph);
  std::optional<BundleReader> reader;
  if (!variables.empty()) reader.emplace(checkpoint);
  WriteContents({.graph = graph,
                 .signatures = signatures,
                 .variables = std::move(variables),
                 .read =
                     [&reader](const Variables& group) {
                       std::vector<Tensor> values;
                       for (const VariableInfo* variable : group) values.push_back(ValueIn(*reader, *variable));
                       return values;
                     }},
                dir);
}

}  // namespace cohort::saved_model
