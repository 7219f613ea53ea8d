#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cohort/core/str_cat.h"
#include "cohort/graph/graph_def/reference_variables_internal.h"
#include "cohort/graph/op_def.h"

namespace cohort {
namespace {

constexpr std::pair<std::string_view, std::string_view> kForms[] = {{"Assign", "AssignVariableOp"},
                                                                    {"AssignAdd", "AssignAddVariableOp"},
                                                                    {"AssignSub", "AssignSubVariableOp"},
                                                                    {"IsVariableInitialized", "VarIsInitializedOp"}};

// An update of a reference may take that of another update, and so on; so many are followed.
constexpr int kLongestChain = 100;

bool IsVariable(const proto::NodeDef& node) { return node.op() == "VariableV2" || node.op() == "Variable"; }

// Returns the op that does for handles what `op` does for references, or null if there is none.
const OpDef* FormOf(const std::string& op) {
  const OpRegistry& ops = OpRegistry::Global();
  for (const auto& [reference, handle] : kForms) {
    if (op == reference) return ops.Find(handle);
  }
  return ops.Find(op) == nullptr ? ops.Find("Resource" + op) : nullptr;
}

// What a reference refers to, and the update after which it is read; "" if it is the variable itself.
struct Reference {
  std::string variable;
  std::string update;
};

class Converter {
 public:
  Converter(std::string prefix, proto::GraphDef* def) : prefix_(std::move(prefix)), def_(*def) {
    for (const proto::NodeDef& node : def_.node()) original_.emplace(node.name(), node);
  }

  void Run() {
    for (int i = 0, count = def_.node_size(); i < count; ++i) {
      proto::NodeDef node = def_.node(i);  // a copy, because reads are added
      Convert(&node);
      *def_.mutable_node(i) = std::move(node);
    }
  }

 private:
  // Returns what the input refers to, or nothing if it is a value or a control input.
  std::optional<Reference> ReferenceOf(const std::string& input) const {
    std::string name = input.ends_with(":0") ? input.substr(0, input.size() - 2) : input;
    std::string update;
    for (int steps = 0; steps < kLongestChain; ++steps) {
      const auto it = original_.find(name);
      if (it == original_.end()) return std::nullopt;
      const proto::NodeDef& node = it->second;
      if (IsVariable(node)) return Reference{name, update};
      const OpDef* form = FormOf(node.op());
      if (form == nullptr || !form->outputs().empty() || node.input_size() == 0) return std::nullopt;
      if (update.empty()) update = name;
      name = node.input(0);
    }
    return std::nullopt;
  }

  void Convert(proto::NodeDef* node) {
    if (IsVariable(*node)) return ConvertVariable(node);
    const OpDef* form = FormOf(node->op());
    const bool changes = form != nullptr && node->input_size() > 0 && ReferenceOf(node->input(0)).has_value();
    const bool reads = node->op() == "Identity" && node->input_size() > 0 && ReferenceOf(node->input(0)).has_value();
    if (reads) form = &OpRegistry::Global().Get("ReadVariableOp");
    int handles = 0;
    if (changes || reads) {
      handles = static_cast<int>(std::count_if(form->inputs().begin(), form->inputs().end(),
                                               [](const ArgDef& arg) { return arg.dtype == DType::kResource; }));
      SetOp(*form, node);
    }
    const proto::NodeDef before = *node;
    Reads reads_before;
    for (int i = 0; i < before.input_size(); ++i) {
      const std::optional<Reference> reference = ReferenceOf(before.input(i));
      if (!reference) continue;
      if (i >= handles) {
        node->set_input(i, AddRead(before, i, *reference, &reads_before));
        continue;
      }
      node->set_input(i, reference->variable);
      if (!reference->update.empty()) node->add_input("^" + reference->update);
    }
  }

  void ConvertVariable(proto::NodeDef* node) const {
    node->set_op("VarHandleOp");
    std::string* const shared = (*node->mutable_attr())["shared_name"].mutable_s();
    if (shared->empty()) *shared = prefix_ + node->name();
  }

  // Makes the node one of `form`. References have the dtype in "T", and most ops of handles have it in "dtype".
  static void SetOp(const OpDef& form, proto::NodeDef* node) {
    node->set_op(form.name());
    auto& attrs = *node->mutable_attr();
    if (form.FindAttr("dtype") != nullptr && attrs.contains("T")) attrs["dtype"] = attrs.at("T");
    for (const char* name : {"T", "dtype", "use_locking", "validate_shape"}) {
      if (form.FindAttr(name) == nullptr) attrs.erase(name);
    }
  }

  // The reads that a node has so far, and the node that waits for its several control inputs.
  struct Reads {
    std::map<std::pair<std::string, std::string>, std::string> by_reference;  // the variable and the update
    std::string wait;
  };

  // Returns the name of the node that reads the variable for input `i` of the node, after what the node itself waits
  // for. Adds it, unless an input before needs the same.
  std::string AddRead(const proto::NodeDef& node, int i, const Reference& reference, Reads* reads) {
    std::string& known = reads->by_reference[{reference.variable, reference.update}];
    if (!known.empty()) return known;
    proto::NodeDef read;
    read.set_name(StrCat(node.name(), "/read_", i));
    read.set_op("ReadVariableOp");
    const proto::NodeDef& variable = original_.at(reference.variable);
    read.set_device(variable.device());
    read.add_input(reference.variable);
    AddControls(node, reads, &read);
    if (!reference.update.empty()) read.add_input("^" + reference.update);
    const auto dtype = variable.attr().find("dtype");
    if (dtype != variable.attr().end()) (*read.mutable_attr())["dtype"] = dtype->second;
    *def_.add_node() = read;
    return known = read.name();
  }

  // Lets `read` wait for what the node waits for; if that is much, by one node for all reads.
  void AddControls(const proto::NodeDef& node, Reads* reads, proto::NodeDef* read) {
    std::vector<std::string> controls;
    for (const std::string& input : node.input()) {
      if (input.starts_with('^')) controls.push_back(input);
    }
    if (controls.size() > 1 && reads->wait.empty()) {
      proto::NodeDef wait;
      wait.set_name(StrCat(node.name(), "/read_after"));
      wait.set_op("NoOp");
      wait.set_device(node.device());
      for (const std::string& control : controls) wait.add_input(control);
      *def_.add_node() = wait;
      reads->wait = StrCat("^", wait.name());
    }
    if (!reads->wait.empty()) controls = {reads->wait};
    for (const std::string& control : controls) read->add_input(control);
  }

  const std::string prefix_;
  proto::GraphDef& def_;
  std::map<std::string, proto::NodeDef> original_;
};

}  // namespace

void UseVariableHandles(const std::string& prefix, proto::GraphDef* def) {
  if (std::none_of(def->node().begin(), def->node().end(), IsVariable)) return;
  Converter(prefix, def).Run();
}

}  // namespace cohort
