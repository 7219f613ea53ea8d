// Reads GraphDefs. The Importer first indexes the names and parses the inputs of all nodes. Then it orders the nodes,
// so that inputs come first. Last it adds them one by one with NodeBuilder. The functions of the library are read after
// the nodes.
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/function.h"
#include "cohort/graph/graph_def.h"
#include "cohort/graph/graph_def/attr_value_proto_internal.h"
#include "cohort/graph/graph_def/graph_def_internal.h"
#include "cohort/graph/graph_def/later_attrs.h"
#include "cohort/graph/graph_def/needed_part.h"
#include "cohort/graph/graph_def/reference_variables_internal.h"

namespace cohort {
namespace {

// A parsed input: "node", "node:1" or "^node".
struct InputRef {
  int node = 0;    // position in the GraphDef
  int output = 0;  // -1: a control input
};

class Importer {
 public:
  Importer(Graph& graph, const proto::GraphDef& def, const std::string& prefix, TensorBudget& budget,
           const ForeignOps& foreign)
      : graph_(graph), def_(def), prefix_(prefix.empty() ? "" : prefix + "/"), budget_(budget), foreign_(foreign) {}

  void Run() {
    IndexNames();
    inputs_.resize(static_cast<size_t>(def_.node_size()));
    for (int i = 0; i < def_.node_size(); ++i) ReadInputs(i);
    added_.resize(inputs_.size());
    for (const int i : Order()) {
      try {
        added_[static_cast<size_t>(i)] = Add(i);
      } catch (const Error& error) {
        ThrowError(error.code(), StrCat("[graph] GraphDef node '", def_.node(i).name(), "' (", def_.node(i).op(),
                                        ") cannot be imported: ", error.what()));
      }
    }
  }

 private:
  void IndexNames() {
    for (int i = 0; i < def_.node_size(); ++i) {
      const std::string& name = def_.node(i).name();
      if (!by_name_.emplace(name, i).second) {
        throw InvalidArgumentError(StrCat("[graph] the GraphDef has two nodes of the name '", name, "'"));
      }
      if (graph_.FindNode(prefix_ + name) != nullptr) {
        throw AlreadyExistsError(StrCat("[graph] GraphDef node '", name, "' (", def_.node(i).op(),
                                        ") cannot be imported: the graph has a node '", prefix_, name,
                                        "'; import under a prefix"));
      }
    }
  }

  [[noreturn]] void FailInput(int node, const std::string& text, const char* why) const {
    throw InvalidArgumentError(StrCat("[graph] GraphDef node '", def_.node(node).name(), "' (", def_.node(node).op(),
                                      "): input '", text, "' ", why));
  }

  void ReadInputs(int node) {
    std::vector<InputRef>& refs = inputs_[static_cast<size_t>(node)];
    for (const std::string& text : def_.node(node).input()) {
      InputRef ref;
      std::string name = text;
      if (!text.empty() && text[0] == '^') {
        ref.output = -1;
        name = text.substr(1);
      } else if (const size_t colon = text.rfind(':'); colon != std::string::npos) {
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, ref.output);
        if (error != std::errc() || stop != end || ref.output < 0) FailInput(node, text, "has no output number");
        name = text.substr(0, colon);
      }
      const auto it = by_name_.find(name);
      if (it == by_name_.end()) FailInput(node, text, "is no node of the GraphDef");
      ref.node = it->second;
      if (ref.output >= 0 && !refs.empty() && refs.back().output < 0) {
        FailInput(node, text, "comes after a control input; control inputs stand last");
      }
      refs.push_back(ref);
    }
  }

  // Returns the order in which nodes are added: inputs first, and otherwise as in the GraphDef.
  std::vector<int> Order() const {
    enum : uint8_t { kNew, kOpen, kDone };
    std::vector<uint8_t> state(inputs_.size(), kNew);
    std::vector<int> order;
    std::vector<std::pair<int, size_t>> stack;
    for (int root = 0; root < def_.node_size(); ++root) {
      if (state[static_cast<size_t>(root)] != kNew) continue;
      stack.emplace_back(root, 0);
      state[static_cast<size_t>(root)] = kOpen;
      while (!stack.empty()) {
        auto& [node, next] = stack.back();
        const std::vector<InputRef>& refs = inputs_[static_cast<size_t>(node)];
        if (next == refs.size()) {
          state[static_cast<size_t>(node)] = kDone;
          order.push_back(node);
          stack.pop_back();
          continue;
        }
        const int input = refs[next++].node;
        uint8_t& input_state = state[static_cast<size_t>(input)];
        if (input_state == kOpen) FailCycle(stack, input);
        if (input_state == kDone) continue;
        input_state = kOpen;
        stack.emplace_back(input, 0);
      }
    }
    return order;
  }

  // Requires: `stack` holds a path from a node to one of its ancestors, and `first` is an input of the last node and on
  // the path.
  [[noreturn]] void FailCycle(const std::vector<std::pair<int, size_t>>& stack, int first) const {
    auto at = std::find_if(stack.begin(), stack.end(), [first](const auto& entry) { return entry.first == first; });
    std::string names = StrCat("'", def_.node(first).name(), "'");
    for (auto entry = stack.end(); entry-- != at;) names += StrCat(" -> '", def_.node(entry->first).name(), "'");
    throw InvalidArgumentError(
        StrCat("[graph] the GraphDef has a cycle: ", names, "; expected every node to depend on others only"));
  }

  AttrMap ReadAttrs(const proto::NodeDef& def) const {
    AttrMap attrs;
    for (const auto& [name, message] : def.attr()) {
      try {
        attrs.emplace(name, FromProto(message, budget_));
      } catch (const Error& error) {
        ThrowError(error.code(), StrCat("attribute '", name, "': ", error.what()));
      }
    }
    const auto it = attrs.find("_class");
    if (it == attrs.end() || prefix_.empty()) return attrs;
    const auto* classes = it->second.get<std::vector<std::string>>();
    if (classes == nullptr) return attrs;
    std::vector<std::string> renamed = *classes;
    for (std::string& name : renamed) {
      if (name.rfind("loc:@", 0) == 0) name = "loc:@" + prefix_ + name.substr(5);
    }
    it->second = AttrValue(std::move(renamed));
    return attrs;
  }

  Output ValueOf(const InputRef& ref) const { return {added_[static_cast<size_t>(ref.node)], ref.output}; }

  Node* Add(int position) {
    const proto::NodeDef& def = def_.node(position);
    AttrMap attrs = ReadAttrs(def);
    const ForeignOps::Build* build = foreign_.BuilderOf(def.op(), attrs);
    if (build != nullptr) return AddForeign(position, *build, attrs);
    const OpDef& op = OpRegistry::Global().Get(def.op());
    DropLaterAttrs(op, &attrs);
    NodeBuilder builder = graph_.Op(def.op());
    builder.ExactName(prefix_ + def.name()).IgnoreScopes().Device(def.device()).Attrs(attrs);

    const std::vector<InputRef>& refs = inputs_[static_cast<size_t>(position)];
    const size_t num_values = static_cast<size_t>(
        std::count_if(refs.begin(), refs.end(), [](const InputRef& ref) { return ref.output >= 0; }));
    size_t next = 0;
    for (const ArgDef& arg : op.inputs()) {
      const bool list = !arg.number_attr.empty() || !arg.type_list_attr.empty();
      const size_t count = CountOfArg(op, arg, attrs);
      if (count > num_values - next) {
        throw InvalidArgumentError(StrCat("input '", arg.name, "' needs ", count, " values, ", num_values - next,
                                          " of ", num_values, " are left"));
      }
      std::vector<Output> values;
      for (size_t i = 0; i < count; ++i) values.push_back(ValueOf(refs[next++]));
      if (list) {
        builder.Inputs(values);
      } else {
        builder.Input(values[0]);
      }
    }
    if (next != num_values) {
      throw InvalidArgumentError(
          StrCat("expected ", next, " inputs, got ", num_values, "; the op is ", op.Signature()));
    }
    for (; next < refs.size(); ++next) builder.Control(added_[static_cast<size_t>(refs[next].node)]);
    return builder.Finish();
  }

  // Adds the nodes that stand for a node of an op that Cohort lacks. The last of them has the node's name.
  Node* AddForeign(int position, const ForeignOps::Build& build, AttrMap attrs) {
    const proto::NodeDef& def = def_.node(position);
    const OpDef& op = *foreign_.Find(def.op());
    DropLaterAttrs(op, &attrs);
    for (const auto& [name, value] : attrs) {
      if (name[0] == '_' || op.FindAttr(name) != nullptr) continue;
      throw InvalidArgumentError(
          StrCat("there is no attribute '", name, "' (given as ", value.ToString(), "); the op is ", op.Signature()));
    }
    for (const AttrDef& attr : op.attrs()) {
      if (attr.default_value.has_value()) attrs.emplace(attr.name, *attr.default_value);
    }
    size_t expected = 0;
    for (const ArgDef& arg : op.inputs()) expected += CountOfArg(op, arg, attrs);
    std::vector<Output> values;
    std::vector<Node*> controls;
    for (const InputRef& ref : inputs_[static_cast<size_t>(position)]) {
      const Output value = ValueOf(ref);
      if (ref.output < 0) {
        controls.push_back(value.node);
      } else if (ref.output < value.node->num_outputs()) {
        values.push_back(value);
      } else {
        throw InvalidArgumentError(StrCat("there is no output ", ref.output, " of ", value.node->Describe()));
      }
    }
    if (values.size() != expected) {
      throw InvalidArgumentError(StrCat("expected ", expected, " inputs, got ", values.size()));
    }
    const NameScope scope(graph_, StrCat(prefix_, def.name(), "/made"));
    const std::vector<Output> results = build(graph_, values, attrs);
    NodeBuilder builder = graph_.Op(results.size() == 1 ? "Identity" : "IdentityN");
    builder.ExactName(prefix_ + def.name()).IgnoreScopes().Device(def.device());
    if (results.size() == 1) {
      builder.Input(results[0]);
    } else {
      builder.Inputs(results);
    }
    for (Node* control : controls) builder.Control(control);
    return builder.Finish();
  }

  Graph& graph_;
  const proto::GraphDef& def_;
  const std::string prefix_;
  TensorBudget& budget_;
  const ForeignOps& foreign_;
  std::unordered_map<std::string, int> by_name_;
  std::vector<std::vector<InputRef>> inputs_;
  std::vector<Node*> added_;
};

void CheckVersion(const proto::GraphDef& def) {
  if (def.versions().min_consumer() <= kGraphDefVersion) return;
  throw InvalidArgumentError(StrCat("[graph] the GraphDef asks for readers of version ", def.versions().min_consumer(),
                                    " or later, this one is ", kGraphDefVersion));
}

}  // namespace

size_t CountOfArg(const OpDef& op, const ArgDef& arg, const AttrMap& attrs) {
  if (arg.number_attr.empty() && arg.type_list_attr.empty()) return 1;
  const std::string& attr = arg.number_attr.empty() ? arg.type_list_attr : arg.number_attr;
  const auto it = attrs.find(attr);
  const AttrDef* attr_def = op.FindAttr(attr);
  const AttrValue* value = it != attrs.end()                                ? &it->second
                           : attr_def != nullptr && attr_def->default_value ? &*attr_def->default_value
                                                                            : nullptr;
  if (value != nullptr) {
    if (const auto* number = value->get<int64_t>(); number != nullptr && *number >= 0) {
      return static_cast<size_t>(*number);
    }
    if (const auto* types = value->get<std::vector<DType>>()) return types->size();
    if (const auto* none = value->get<std::vector<int64_t>>(); none != nullptr && none->empty()) return 0;
  }
  throw InvalidArgumentError(StrCat("attribute '", attr, "', which says how long '", arg.name, "' is, is ",
                                    value == nullptr ? "missing" : value->ToString()));
}

void ImportNodes(Graph& graph, const proto::GraphDef& def, const std::string& prefix, TensorBudget& budget,
                 const ForeignOps& foreign) {
  Importer(graph, def, prefix, budget, foreign).Run();
}

void ImportGraphDef(Graph& graph, std::string_view bytes, const std::string& prefix) {
  google::protobuf::LogSilencer quiet;  // errors are thrown and must not be written to stderr
  proto::GraphDef def;
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !def.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw InvalidArgumentError(StrCat("[graph] expected a serialized GraphDef, got ", bytes.size(),
                                      " bytes that are none (damaged, cut off or of another format)"));
  }
  CheckVersion(def);
  UseVariableHandles(prefix.empty() ? "" : StrCat(prefix, "/"), &def);
  const ForeignOps none;
  TensorBudget budget;
  ImportNodes(graph, def, prefix, budget, none);
  for (const proto::FunctionDef& function : def.library().function()) {
    if (graph.FindFunction(function.signature().name()) != nullptr) continue;
    try {
      graph.AddFunction(FromProto(function, &graph, budget, none));
    } catch (const Error& error) {
      // Graphs of TensorFlow often have functions that nothing in them calls.
      LogWarning("graph", error.what(), "; it is left out");
    }
  }
}

void ImportGraphDefMessage(Graph& graph, const proto::GraphDef& def, const ForeignOps& foreign) {
  CheckVersion(def);
  TensorBudget budget;
  ImportNodes(graph, def, "", budget, foreign);
  for (const proto::FunctionDef& function : def.library().function()) {
    graph.AddFunction(FromProto(function, &graph, budget, foreign));
  }
}

std::unique_ptr<Graph> ParseGraphDef(std::string_view bytes) {
  auto graph = std::make_unique<Graph>();
  ImportGraphDef(*graph, bytes);
  return graph;
}

}  // namespace cohort
