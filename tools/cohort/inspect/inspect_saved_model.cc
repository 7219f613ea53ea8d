// Lists the graphs of a SavedModel with their signatures, as `saved_model_cli show --all` does, and then its values.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/file.h"
#include "cohort/core/str_cat.h"
#include "cohort/proto/saved_model.pb.h"
#include "cohort/proto/tensor_proto.h"
#include "tools/cohort/inspect/inspect_kinds.h"

namespace cohort::tools {
namespace {

// Returns, for example, "float32", or TensorFlow's name if Cohort lacks the dtype.
std::string DTypeText(int dtype) {
  if (IsKnownDType(dtype)) return std::string(DTypeName(static_cast<DType>(dtype)));
  const std::string& name = proto::DataType_Name(dtype);
  return name.empty() ? StrCat("dtype ", dtype) : name;
}

std::string ShapeText(const proto::TensorShapeProto& shape) {
  try {
    return FromProto(shape).ToString();
  } catch (const Error&) {
    return "(bad)";
  }
}

void ListTensors(const std::string& signature, const char* kind,
                 const google::protobuf::Map<std::string, proto::TensorInfo>& tensors, TextTable& table) {
  for (const auto& [name, tensor] : std::map<std::string, proto::TensorInfo>(tensors.begin(), tensors.end())) {
    table.AddRow({Printable(signature), kind, Printable(name), DTypeText(tensor.dtype()),
                  ShapeText(tensor.tensor_shape()), Printable(tensor.name())});
  }
}

void ListGraph(const proto::MetaGraphDef& meta, std::ostream& out) {
  const proto::MetaGraphDef::MetaInfoDef& info = meta.meta_info_def();
  std::set<std::string> ops;
  for (const proto::NodeDef& node : meta.graph_def().node()) ops.insert(node.op());
  for (const proto::FunctionDef& function : meta.graph_def().library().function()) {
    for (const proto::NodeDef& node : function.node_def()) ops.insert(node.op());
  }
  out << "graph {" << Printable(StrJoin(info.tags(), ", ")) << "}"
      << (info.tensorflow_version().empty() ? "" : ", written by TensorFlow ") << Printable(info.tensorflow_version())
      << ": " << meta.graph_def().node_size() << " nodes, " << meta.graph_def().library().function_size()
      << " functions, " << ops.size() << " ops\n";
  TextTable table;
  table.AddRow({"signature", "", "name", "dtype", "shape", "tensor"});
  for (const auto& [name, signature] :
       std::map<std::string, proto::SignatureDef>(meta.signature_def().begin(), meta.signature_def().end())) {
    if (name.starts_with("__saved_model_")) continue;  // ops that a loader runs
    ListTensors(name, "input", signature.inputs(), table);
    ListTensors(name, "output", signature.outputs(), table);
  }
  table.Print(out);
}

bool HasVariables(const proto::MetaGraphDef& meta) {
  const auto have = [](const auto& nodes) {
    return std::any_of(nodes.begin(), nodes.end(), [](const proto::NodeDef& node) {
      return node.op() == "VarHandleOp" || node.op() == "VariableV2" || node.op() == "Variable";
    });
  };
  const auto& functions = meta.graph_def().library().function();
  return have(meta.graph_def().node()) ||
         std::any_of(functions.begin(), functions.end(), [&](const auto& f) { return have(f.node_def()); });
}

}  // namespace

bool InspectSavedModel(const std::string& dir, const InspectOptions& options, std::ostream& out, std::ostream& err) {
  const std::string path = StrCat(dir, "/saved_model.pb");
  proto::SavedModel model;
  {
    google::protobuf::LogSilencer quiet;  // the error is thrown and must not be written to stderr
    if (!model.ParseFromString(ReadFile(path))) {
      throw DataLossError(StrCat(path, " is not a SavedModel, or is damaged"));
    }
  }
  out << "SavedModel " << dir << ": " << model.meta_graphs_size()
      << (model.meta_graphs_size() == 1 ? " graph\n" : " graphs\n");
  for (const proto::MetaGraphDef& meta : model.meta_graphs()) ListGraph(meta, out);
  const std::string values = StrCat(dir, "/variables/variables");
  if (FileExists(values + ".index")) return InspectCheckpoint(values, options, out, err);
  if (std::none_of(model.meta_graphs().begin(), model.meta_graphs().end(), HasVariables)) return true;
  err << "cohort inspect: " << values << ".index is not there, and the model has variables\n";
  return false;
}

}  // namespace cohort::tools
