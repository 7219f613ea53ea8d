// Writes functions as FunctionDefs and reads them. In a FunctionDef an input is "argument", "node:output_arg:index
// within the output_arg" or "^node". To read one, a BodyReader makes the GraphDef of the body, with Placeholders for
// the arguments, and the reader of GraphDefs does the rest.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/constant_value.h"
#include "cohort/graph/copy_node.h"
#include "cohort/graph/function.h"
#include "cohort/graph/graph_def/attr_value_proto_internal.h"
#include "cohort/graph/graph_def/graph_def_internal.h"

namespace cohort {
namespace {

constexpr char kShapes[] = "_output_shapes";

std::string TensorName(const Output& value, const std::set<const Node*>& args) {
  if (args.count(value.node) > 0) return value.node->name();
  const ArgDef& arg = value.node->output_arg(value.index);
  int first = value.index;
  while (first > 0 && &value.node->output_arg(first - 1) == &arg) --first;
  return StrCat(value.node->name(), ":", arg.name, ":", value.index - first);
}

bool ReadNumber(const std::string& text, size_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

[[noreturn]] void FailInput(const std::string& text) {
  throw InvalidArgumentError(
      StrCat("expected an argument or 'node:output:index' of the body; got '", text, "', which is none"));
}

// Makes a function of a FunctionDef. It writes the GraphDef of the body, and the importer of GraphDefs does the rest.
class BodyReader {
 public:
  BodyReader(const proto::FunctionDef& def, Graph* outer, TensorBudget& budget, const ForeignOps& foreign)
      : def_(def), outer_(outer), budget_(budget), foreign_(foreign) {}

  std::shared_ptr<const Function> Read() {
    if (def_.signature().attr_size() > 0) {
      throw InvalidArgumentError(StrCat("attribute '", def_.signature().attr(0).name(),
                                        "' is decided by the call, which Cohort does not have"));
    }
    for (int i = 0; i < def_.signature().input_arg_size(); ++i) AddArg(i);
    for (const proto::NodeDef& node : def_.node_def()) nodes_.emplace(node.name(), &node);
    for (const proto::NodeDef& node : def_.node_def()) {
      proto::NodeDef* copy = graph_def_.add_node();
      *copy = node;
      for (std::string& input : *copy->mutable_input()) input = FlatName(input);
    }
    std::unique_ptr<Graph> graph = outer_ == nullptr ? std::make_unique<Graph>() : outer_->NewBody();
    graph->CloseBody();
    ImportNodes(*graph, graph_def_, "", budget_, foreign_);
    std::vector<Output> args, results;
    for (const proto::OpDef::ArgDef& arg : def_.signature().input_arg()) args.push_back(graph->FindOutput(arg.name()));
    for (const proto::OpDef::ArgDef& result : def_.signature().output_arg()) {
      const auto found = def_.ret().find(result.name());
      if (found == def_.ret().end()) throw InvalidArgumentError(StrCat("result '", result.name(), "' has no value"));
      results.push_back(graph->FindOutput(FlatName(found->second)));
    }
    return std::make_shared<const Function>(def_.signature().name(), std::move(graph), std::move(args),
                                            std::move(results));
  }

 private:
  void AddArg(int index) {
    const proto::OpDef::ArgDef& arg = def_.signature().input_arg(index);
    if (!arg.type_attr().empty() || !arg.number_attr().empty() || !arg.type_list_attr().empty()) {
      throw InvalidArgumentError(StrCat("argument '", arg.name(), "' has a dtype that the call decides"));
    }
    args_.insert(arg.name());
    proto::NodeDef* node = graph_def_.add_node();
    node->set_name(arg.name());
    node->set_op("Placeholder");
    (*node->mutable_attr())["dtype"].set_type(arg.type());
    proto::AttrValue& shape = (*node->mutable_attr())["shape"];
    shape.mutable_shape()->set_unknown_rank(true);
    const auto attrs = def_.arg_attr().find(static_cast<uint32_t>(index));
    if (attrs == def_.arg_attr().end()) return;
    for (const auto& [name, value] : attrs->second.attr()) {
      if (name == kShapes && value.list().shape_size() == 1) *shape.mutable_shape() = value.list().shape(0);
      if (name == kHandleDTypes || name == kHandleShapes) (*node->mutable_attr())[name] = value;
    }
  }

  // Returns "node:flat index" for "node:output_arg:index".
  std::string FlatName(const std::string& text) const {
    if (text.empty() || text[0] == '^' || args_.count(text) > 0) return text;
    const auto node = nodes_.find(text.substr(0, text.find(':')));
    if (node == nodes_.end()) FailInput(text);
    const OpDef* op = foreign_.Find(node->second->op());
    if (op == nullptr) op = &OpRegistry::Global().Get(node->second->op());
    return StrCat(node->first, ":", FlatOutputIndex(*op, *node->second, text, budget_));
  }

  const proto::FunctionDef& def_;
  Graph* const outer_;
  TensorBudget& budget_;
  const ForeignOps& foreign_;
  proto::GraphDef graph_def_;
  std::set<std::string> args_;
  std::map<std::string, const proto::NodeDef*> nodes_;
};

}  // namespace

size_t FlatOutputIndex(const OpDef& op, const proto::NodeDef& def, const std::string& text, TensorBudget& budget) {
  const size_t last = text.rfind(':');
  const size_t middle = last == std::string::npos || last == 0 ? std::string::npos : text.rfind(':', last - 1);
  size_t index = 0;
  if (middle == std::string::npos || !ReadNumber(text.substr(last + 1), &index)) FailInput(text);
  AttrMap attrs;  // those that say how many outputs there are; others may have large tensors
  for (const ArgDef& arg : op.outputs()) {
    const std::string& name = arg.number_attr.empty() ? arg.type_list_attr : arg.number_attr;
    const auto given = def.attr().find(name);
    if (given != def.attr().end()) attrs.emplace(name, FromProto(given->second, budget));
  }
  size_t flat = 0;
  for (const ArgDef& arg : op.outputs()) {
    const size_t count = CountOfArg(op, arg, attrs);
    if (arg.name == text.substr(middle + 1, last - middle - 1)) {
      if (index >= count) FailInput(text);
      return flat + index;
    }
    flat += count;
  }
  FailInput(text);
}

void ToProto(const Function& function, proto::FunctionDef* out) {
  out->Clear();
  out->mutable_signature()->set_name(function.name());
  std::set<const Node*> args;
  for (size_t i = 0; i < function.args().size(); ++i) {
    const Output& arg = function.args()[i];
    args.insert(arg.node);
    proto::OpDef::ArgDef* def = out->mutable_signature()->add_input_arg();
    def->set_name(arg.node->name());
    def->set_type(static_cast<proto::DataType>(arg.dtype()));
    auto& attrs = *(*out->mutable_arg_attr())[static_cast<uint32_t>(i)].mutable_attr();
    ToProto(AttrValue(std::vector<Shape>{arg.shape()}), &attrs[kShapes]);
    for (const char* name : {kHandleDTypes, kHandleShapes}) {
      const auto found = arg.node->attrs().find(name);
      if (found != arg.node->attrs().end()) ToProto(found->second, &attrs[name]);
    }
  }
  for (const Node* node : function.graph().nodes()) {
    if (args.count(node) > 0) continue;
    proto::NodeDef* def = out->add_node_def();
    ToProto(*node, {}, def);
    for (int i = 0; i < node->num_inputs(); ++i) def->set_input(i, TensorName(node->input(i), args));
    if (!node->op().is_stateful()) continue;
    out->mutable_signature()->set_is_stateful(true);
    out->mutable_signature()->add_control_output(node->name());
    (*out->mutable_control_ret())[node->name()] = node->name();
  }
  for (size_t i = 0; i < function.results().size(); ++i) {
    const Output& result = function.results()[i];
    proto::OpDef::ArgDef* def = out->mutable_signature()->add_output_arg();
    def->set_name(StrCat("result", i));
    def->set_type(static_cast<proto::DataType>(result.dtype()));
    (*out->mutable_ret())[def->name()] = TensorName(result, args);
  }
}

std::shared_ptr<const Function> FromProto(const proto::FunctionDef& def, Graph* outer, TensorBudget& budget,
                                          const ForeignOps& foreign) {
  try {
    return BodyReader(def, outer, budget, foreign).Read();
  } catch (const Error& error) {
    ThrowError(error.code(),
               StrCat("[graph] the function '", def.signature().name(), "' cannot be read: ", error.what()));
  }
}

std::string SerializeFunction(const Function& function) {
  for (const Node* node : function.graph().nodes()) {
    const std::vector<std::string> called = CalledFunctions(*node);
    if (called.empty()) continue;
    throw UnimplementedError(StrCat("[graph] the function '", function.name(), "' cannot be written alone: ",
                                    node->Describe(), " calls the function '", called[0], "'"));
  }
  proto::FunctionDef def;
  ToProto(function, &def);
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    def.SerializeToCodedStream(&coded);
  }
  return bytes;
}

std::shared_ptr<const Function> ParseFunction(std::string_view bytes) {
  google::protobuf::LogSilencer quiet;  // errors are thrown and must not be written to stderr
  proto::FunctionDef def;
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !def.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw InvalidArgumentError(
        StrCat("[graph] expected a serialized FunctionDef; got ", bytes.size(), " bytes that are none"));
  }
  TensorBudget budget;
  return FromProto(def, nullptr, budget, ForeignOps());
}

}  // namespace cohort
