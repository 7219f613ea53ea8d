// KeepNeededPart. A function is inlined once: its own calls are replaced in a copy of its FunctionDef, and each call of
// it gets a copy of the result. In a graph a value is called "node:index", and in a function "argument" or
// "node:output_arg:index".
#include "cohort/graph/graph_def/needed_part.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/constant_value.h"
#include "cohort/graph/graph_def/case_op_internal.h"
#include "cohort/graph/graph_def/graph_def_internal.h"
#include "cohort/graph/graph_def/input_name_internal.h"
#include "cohort/graph/graph_def/needless_order_internal.h"
#include "cohort/graph/graph_def/reference_variables_internal.h"

namespace cohort {
namespace {

constexpr int kMaxDepth = 100;
constexpr uint64_t kFreeCopies = uint64_t{64} << 20;  // bytes
constexpr uint64_t kCopiesPerByte = 16;
constexpr uint64_t kBytesPerNode = 256;  // what the smallest node takes in memory
constexpr int kMaxListed = 10;
constexpr int kMaxSearchedResults = 16;

// Ops that are stateful, but change nothing that another node could see.
const std::unordered_set<std::string> kReaders = {
    "HashTableV2",          "LookupTableFindV2", "LookupTableSizeV2",  "MutableHashTableV2", "RandomShuffle",
    "RandomStandardNormal", "RandomUniform",     "RandomUniformInt",   "ReadVariableOp",     "ResourceGather",
    "TruncatedNormal",      "VarHandleOp",       "VarIsInitializedOp", "VariableShape"};

using Nodes = google::protobuf::RepeatedPtrField<proto::NodeDef>;
using Names = std::unordered_map<std::string, std::string>;

bool IsCall(const proto::NodeDef& node) {
  return node.op() == "PartitionedCall" || node.op() == "StatefulPartitionedCall";
}

std::string In(const std::string& function) {
  return function.empty() ? "" : StrCat(" in the function '", function, "'");
}

std::string Describe(const proto::NodeDef& node, const std::string& function) {
  return StrCat("node '", node.name(), "' (", node.op(), ")", In(function));
}

std::unordered_map<std::string, const proto::NodeDef*> ByName(const Nodes& nodes, const std::string& function) {
  std::unordered_map<std::string, const proto::NodeDef*> by_name;
  for (const proto::NodeDef& node : nodes) {
    if (by_name.emplace(node.name(), &node).second) continue;
    throw InvalidArgumentError(StrCat("[graph] there are two nodes of the name '", node.name(), "'", In(function)));
  }
  return by_name;
}

// Returns the names of the nodes on which one of `ends` depends. Ends and inputs may be in either form.
std::unordered_set<std::string> Ancestors(const std::unordered_map<std::string, const proto::NodeDef*>& by_name,
                                          std::vector<std::string> ends) {
  std::unordered_set<std::string> found;
  while (!ends.empty()) {
    const std::string name = NodeOf(ends.back());
    ends.pop_back();
    const auto it = by_name.find(name);
    if (it == by_name.end() || !found.insert(name).second) continue;
    ends.insert(ends.end(), it->second->input().begin(), it->second->input().end());
  }
  return found;
}

void Prune(const std::vector<std::string>& ends, const std::string& function, Nodes& nodes) {
  const std::unordered_set<std::string> needed = Ancestors(ByName(nodes, function), ends);
  Nodes kept;
  for (proto::NodeDef& node : nodes) {
    if (needed.count(node.name()) > 0) *kept.Add() = std::move(node);
  }
  nodes.Swap(&kept);
}

std::vector<std::string> EndsOf(const proto::FunctionDef& def) {
  std::vector<std::string> ends;
  for (const auto& [name, value] : def.ret()) ends.push_back(value);
  for (const auto& [name, node] : def.control_ret()) ends.push_back(node);
  return ends;
}

// TensorFlow 2 writes shapes of arguments into "_input_shapes", and what it knows of handles into the signature.
void DescribeArgs(proto::FunctionDef& def) {
  const auto shapes = def.attr().find("_input_shapes");
  for (int i = 0; i < def.signature().input_arg_size(); ++i) {
    const proto::OpDef::ArgDef& arg = def.signature().input_arg(i);
    auto& attrs = *(*def.mutable_arg_attr())[static_cast<uint32_t>(i)].mutable_attr();
    if (attrs.count("_output_shapes") == 0 && shapes != def.attr().end() &&
        shapes->second.list().shape_size() == def.signature().input_arg_size()) {
      *attrs["_output_shapes"].mutable_list()->add_shape() = shapes->second.list().shape(i);
    }
    if (arg.handle_data_size() != 1 || attrs.count(kHandleDTypes) > 0) continue;
    if (!IsKnownDType(arg.handle_data(0).dtype())) continue;
    attrs[kHandleDTypes].mutable_list()->add_type(arg.handle_data(0).dtype());
    *attrs[kHandleShapes].mutable_list()->add_shape() = arg.handle_data(0).shape();
  }
}

// A function whose own calls are replaced.
struct Inlined {
  proto::FunctionDef def;
  std::vector<std::string> effects;  // the nodes of control_ret
  std::vector<bool> waits;           // of each result: whether it depends on all effects
  uint64_t cost = 0;                 // of one copy
};

class Inliner {
 public:
  Inliner(proto::GraphDef& def, const ForeignOps& foreign)
      : def_(def), foreign_(foreign), copies_left_(kFreeCopies + kCopiesPerByte * def.ByteSizeLong()) {}

  InlinedValues Run(std::vector<std::string> ends) {
    for (const proto::FunctionDef& function : def_.library().function()) {
      if (functions_.emplace(function.signature().name(), &function).second) continue;
      throw InvalidArgumentError(
          StrCat("[graph] the library has two functions of the name '", function.signature().name(), "'"));
    }
    Prune(ends, "", *def_.mutable_node());
    LowerCases("", *def_.mutable_node());
    InlinedValues values(ReplaceCalls("", *def_.mutable_node()));
    for (std::string& end : ends) end = values.Of(end);
    Prune(ends, "", *def_.mutable_node());
    NeedFunctions("", def_.node());
    if (!inlined_.empty()) Simplify("", ends, *def_.mutable_node());
    CheckOps("", def_.node());
    proto::FunctionDefLibrary library;
    for (const std::string& name : needed_) {
      proto::FunctionDef& def = inlined_.at(name)->def;
      Simplify(name, EndsOf(def), *def.mutable_node_def());
      CheckOps(name, def.node_def());
    }
    // Only now, because HasEffect looks into functions.
    for (const std::string& name : needed_) *library.add_function() = std::move(inlined_.at(name)->def);
    FailIfUnknown();
    def_.mutable_library()->Swap(&library);
    return values;
  }

 private:
  // Throws NotFoundError if the library lacks the function that `caller` needs.
  const proto::FunctionDef& FunctionCalled(const std::string& name, const std::string& caller) const {
    const auto found = functions_.find(name);
    if (found != functions_.end()) return *found->second;
    throw NotFoundError(StrCat("[graph] ", caller, " needs the function '", name, "', which the library lacks"));
  }

  const Inlined& Inline(const std::string& name, const std::string& caller) {
    if (const auto done = inlined_.find(name); done != inlined_.end()) return *done->second;
    const proto::FunctionDef& called = FunctionCalled(name, caller);
    if (!open_.insert(name).second)
      throw InvalidArgumentError(StrCat("[graph] the function '", name, "' calls itself"));
    if (open_.size() > kMaxDepth) {
      throw InvalidArgumentError(StrCat("[graph] functions call each other more than ", kMaxDepth, " deep; '", name,
                                        "' is the last one of them"));
    }
    auto result = std::make_unique<Inlined>();
    proto::FunctionDef& def = result->def;
    def = called;
    DescribeArgs(def);
    Prune(EndsOf(def), name, *def.mutable_node_def());
    LowerCases(name, *def.mutable_node_def());
    const InlinedValues values(ReplaceCalls(name, *def.mutable_node_def()));
    for (auto& [result_name, value] : *def.mutable_ret()) value = values.Of(value);
    NeedFunctions(name, def.node_def());
    Measure(*result);
    open_.erase(name);
    return *(inlined_[name] = std::move(result));
  }

  static void Measure(Inlined& function) {
    const proto::FunctionDef& def = function.def;
    function.cost = def.ByteSizeLong() + kBytesPerNode * static_cast<uint64_t>(def.node_def_size());
    std::set<std::string> effects;
    for (const auto& [name, node] : def.control_ret()) effects.insert(node);
    function.effects.assign(effects.begin(), effects.end());
    const auto by_name = ByName(def.node_def(), def.signature().name());
    for (const std::string& node : effects) {
      if (by_name.count(node) > 0) continue;
      throw InvalidArgumentError(StrCat("[graph] the function '", def.signature().name(), "' has no node '", node,
                                        "', which it names as an effect"));
    }
    for (const proto::OpDef::ArgDef& result : def.signature().output_arg()) {
      const auto value = def.ret().find(result.name());
      if (value == def.ret().end() || value->second.empty() || IsControl(value->second)) {
        throw InvalidArgumentError(
            StrCat("[graph] result '", result.name(), "' of the function '", def.signature().name(), "' has no value"));
      }
      bool waits = effects.empty();
      if (!waits && def.signature().output_arg_size() <= kMaxSearchedResults) {
        const std::unordered_set<std::string> before = Ancestors(by_name, {value->second});
        waits = std::all_of(effects.begin(), effects.end(),
                            [&before](const std::string& node) { return before.count(node) > 0; });
      }
      function.waits.push_back(waits);
    }
  }

  // Replaces the calls in `nodes`, which are those of a function, or of the graph if `function` is "". Returns what
  // stands for the values of the calls.
  std::map<std::string, std::string> ReplaceCalls(const std::string& function, Nodes& nodes);

  // Replaces the nodes of op Case in `nodes`, which are those of a function, or of the graph if `function` is "".
  void LowerCases(const std::string& function, Nodes& nodes) {
    if (std::none_of(nodes.begin(), nodes.end(), IsCase)) return;
    std::unordered_set<std::string> taken;
    for (const proto::NodeDef& node : nodes) taken.insert(node.name());
    if (const auto def = functions_.find(function); def != functions_.end()) {
      for (const proto::OpDef::ArgDef& arg : def->second->signature().input_arg()) taken.insert(arg.name());
    }
    CaseContext context;
    context.in_graph = function.empty();
    context.new_node = [&taken](const std::string& wanted) {
      std::string name = wanted;
      for (int i = 1; !taken.insert(name).second; ++i) name = StrCat(wanted, "_", i);
      return name;
    };
    context.new_function = [this](const std::string& wanted) {
      return StrCat(wanted, "_", generated_.size() + functions_.size(), "_", next_case_++);
    };
    context.take = [this](uint64_t bytes) { Take(bytes, "Case"); };
    Nodes out;
    for (proto::NodeDef& node : nodes) {
      if (!IsCase(node)) {
        *out.Add() = std::move(node);
        continue;
      }
      const auto branches = node.attr().find("branches");
      proto::FunctionDef first;  // without its nodes
      if (branches != node.attr().end() && branches->second.list().func_size() > 0) {
        const proto::FunctionDef& branch =
            FunctionCalled(branches->second.list().func(0).name(), Describe(node, function));
        Take(branch.signature().ByteSizeLong(), "Case");
        *first.mutable_signature() = branch.signature();
        *first.mutable_arg_attr() = branch.arg_attr();
        const auto shapes = branch.attr().find("_input_shapes");
        if (shapes != branch.attr().end()) (*first.mutable_attr())["_input_shapes"] = shapes->second;
      }
      DescribeArgs(first);
      context.first = &first;
      CaseParts parts = LowerCase(node, context);
      for (proto::NodeDef& made : parts.nodes) *out.Add() = std::move(made);
      for (proto::FunctionDef& made : parts.functions) {
        generated_.push_back(std::move(made));
        const std::string& name = generated_.back().signature().name();
        if (functions_.emplace(name, &generated_.back()).second) continue;
        throw InvalidArgumentError(StrCat("[graph] the name '", name, "' of a function is taken"));
      }
    }
    nodes.Swap(&out);
  }

  // Says that `bytes` more are made. `last` is a function or an op.
  void Take(uint64_t bytes, const std::string& last) {
    if (bytes > copies_left_) {
      throw InvalidArgumentError(StrCat(
          "[graph] the calls of functions cannot be replaced, because the copies of the functions would be too large; "
          "the last one was '",
          last, "'"));
    }
    copies_left_ -= bytes;
  }

  // Inlines the functions that `nodes` name in attributes, such as the body of a loop, and puts them into needed_.
  void NeedFunctions(const std::string& function, const Nodes& nodes) {
    for (const proto::NodeDef& node : nodes) {
      for (const auto& [name, value] : node.attr()) {
        if (value.has_func()) Need(value.func().name(), Describe(node, function));
        for (const proto::NameAttrList& func : value.list().func()) Need(func.name(), Describe(node, function));
      }
    }
  }
  void Need(const std::string& name, const std::string& caller) {
    Inline(name, caller);
    needed_.insert(name);
  }

  void Simplify(const std::string& function, const std::vector<std::string>& ends, Nodes& nodes) {
    DropNeedlessOrder(
        ends, function.empty(), [this](const proto::NodeDef& node) { return HasEffect(node); }, nodes);
    Prune(ends, function, nodes);
  }

  // Returns whether the order of the node and other nodes with an effect, or of nodes that read values, matters.
  bool HasEffect(const proto::NodeDef& node) {
    const OpDef* op = foreign_.Find(node.op());
    if (op == nullptr) return true;
    bool calls = false, has_effect = false;
    for (const auto& [name, value] : node.attr()) {
      if (!value.has_func()) continue;
      calls = true;
      const std::string& callee = value.func().name();
      if (has_effect_.emplace(callee, false).second) {
        const Nodes& nodes = inlined_.at(callee)->def.node_def();
        has_effect_[callee] =
            std::any_of(nodes.begin(), nodes.end(), [this](const auto& inner) { return HasEffect(inner); });
      }
      has_effect = has_effect || has_effect_.at(callee);
    }
    return calls ? has_effect : op->is_stateful() && kReaders.count(node.op()) == 0;
  }

  void CheckOps(const std::string& function, const Nodes& nodes) {
    for (const proto::NodeDef& node : nodes) {
      if (foreign_.Find(node.op()) != nullptr) continue;
      const std::string& origin = OriginOf(function, node.name());
      if (!missing_ops_.insert(node.op()).second) continue;
      missing_.push_back(StrCat("'", node.op(), "' of node '", node.name(), "'", In(origin)));
    }
  }
  void FailIfUnknown() const {
    if (missing_.empty()) return;
    const size_t listed = std::min<size_t>(missing_.size(), kMaxListed);
    const std::vector<std::string> first(missing_.begin(), missing_.begin() + static_cast<ptrdiff_t>(listed));
    throw NotFoundError(StrCat("[graph] Cohort lacks ", missing_.size() == 1 ? "the op " : "the ops ",
                               StrJoin(first, ", "),
                               listed < missing_.size() ? StrCat(", and ", missing_.size() - listed, " more") : ""));
  }

  const std::string& OriginOf(const std::string& function, const std::string& node) const {
    const auto it = origins_.find({function, node});
    return it == origins_.end() ? function : it->second;
  }

  friend class Caller;
  proto::GraphDef& def_;
  const ForeignOps& foreign_;
  uint64_t copies_left_;
  TensorBudget budget_;
  std::deque<proto::FunctionDef> generated_;
  int next_case_ = 0;
  std::unordered_map<std::string, const proto::FunctionDef*> functions_;  // of the library, and generated_
  std::map<std::string, std::unique_ptr<Inlined>> inlined_;
  std::set<std::string> open_;    // the functions that are being inlined
  std::set<std::string> needed_;  // the functions of the new library
  // For a node with an unknown op that came from another function: this function. By where the node is.
  std::map<std::pair<std::string, std::string>, std::string> origins_;
  std::unordered_map<std::string, bool> has_effect_;  // of functions
  std::set<std::string> missing_ops_;
  std::vector<std::string> missing_;
};

// Replaces the calls in the graph or in one function.
class Caller {
 public:
  Caller(Inliner& inliner, const std::string& function) : inliner_(inliner), function_(function) {}

  std::map<std::string, std::string> Run(Nodes& nodes) {
    if (std::none_of(nodes.begin(), nodes.end(), IsCall)) return {};
    for (const auto& [name, node] : ByName(nodes, function_)) taken_.insert(name);
    for (proto::NodeDef& node : nodes) {
      if (IsCall(node)) {
        Replace(node);
      } else {
        *out_.Add() = std::move(node);
      }
    }
    for (const auto& [value, stand_in] : values_) Resolve(value);
    for (proto::NodeDef& node : out_) {
      for (std::string& input : *node.mutable_input()) input = Resolve(input);
    }
    nodes.Swap(&out_);
    return std::move(values_);
  }

 private:
  bool in_graph() const { return function_.empty(); }

  // The state of one call.
  struct Call {
    const proto::NodeDef& node;
    const Inlined& callee;
    std::unordered_map<std::string, std::string> args;  // of each argument: the input
    std::vector<std::string> controls;                  // "^node"
    std::unordered_map<std::string, const proto::NodeDef*> body;
    Names renamed;
  };

  void Replace(const proto::NodeDef& node) {
    const auto f = node.attr().find("f");
    if (f == node.attr().end() || !f->second.has_func()) {
      throw InvalidArgumentError(StrCat("[graph] ", Describe(node, function_), " names no function in 'f'"));
    }
    for (const auto& [name, value] : f->second.func().attr()) {
      if (!name.empty() && name[0] == '_') continue;
      throw InvalidArgumentError(StrCat("[graph] ", Describe(node, function_), " calls '", f->second.func().name(),
                                        "' with an attribute '", name, "', which Cohort's functions do not have"));
    }
    const Inlined& callee = inliner_.Inline(f->second.func().name(), Describe(node, function_));
    // Each name in the copy begins with the name of the call.
    uint64_t names = 0;
    for (const proto::NodeDef& inner : callee.def.node_def()) names += 1 + static_cast<uint64_t>(inner.input_size());
    inliner_.Take(callee.cost + names * node.name().size(), callee.def.signature().name());
    replaced_.insert(node.name());
    Call call{node, callee, {}, {}, ByName(callee.def.node_def(), callee.def.signature().name()), {}};
    ReadInputs(call);
    TakeTexts(call);
    for (const proto::NodeDef& inner : callee.def.node_def()) {
      call.renamed.emplace(inner.name(), NewName(StrCat(node.name(), "/", inner.name())));
    }
    AddEntry(call);
    for (const proto::NodeDef& inner : callee.def.node_def()) Copy(call, inner);
    AddEnd(call);
    AddResults(call);
  }

  void ReadInputs(Call& call) const {
    const proto::OpDef& signature = call.callee.def.signature();
    std::vector<std::string> values;
    for (const std::string& input : call.node.input()) {
      if (IsControl(input)) {
        call.controls.push_back(input);
      } else {
        values.push_back(input);
      }
    }
    if (values.size() != static_cast<size_t>(signature.input_arg_size())) {
      throw InvalidArgumentError(StrCat("[graph] ", Describe(call.node, function_), " has ", values.size(),
                                        " inputs, but the function '", signature.name(), "' has ",
                                        signature.input_arg_size(), " arguments"));
    }
    for (int i = 0; i < signature.input_arg_size(); ++i) {
      const std::string& name = signature.input_arg(i).name();
      if (call.body.count(name) > 0 || !call.args.emplace(name, values[static_cast<size_t>(i)]).second) {
        throw InvalidArgumentError(StrCat("[graph] the name '", name, "' stands for two things", In(signature.name())));
      }
    }
  }

  // Counts the names of the caller's nodes that the copies get: those of arguments and of control inputs, and the name
  // of the call in its results.
  void TakeTexts(const Call& call) const {
    uint64_t controls = 0;
    for (const std::string& control : call.controls) controls = std::max<uint64_t>(controls, control.size());
    uint64_t texts = static_cast<uint64_t>(call.callee.def.signature().output_arg_size()) * call.node.name().size();
    for (const proto::NodeDef& inner : call.callee.def.node_def()) {
      texts += controls;
      for (const std::string& input : inner.input()) {
        const auto arg = call.args.find(IsControl(input) ? input.substr(1) : input);
        if (arg != call.args.end()) texts += arg->second.size();
      }
    }
    inliner_.Take(texts, call.callee.def.signature().name());
  }

  // If effects of the function wait for several nodes, they wait for one node that waits for these.
  void AddEntry(Call& call) {
    if (call.controls.size() < 2) return;
    proto::NodeDef* entry = out_.Add();
    entry->set_name(NewName(call.node.name() + "/entry"));
    entry->set_op("NoOp");
    for (const std::string& control : call.controls) entry->add_input(control);
    call.controls = {StrCat("^", entry->name())};
  }

  void Copy(const Call& call, const proto::NodeDef& inner) {
    const OpDef* op = inliner_.foreign_.Find(inner.op());
    const std::string& callee = call.callee.def.signature().name();
    proto::NodeDef* node = out_.Add();
    *node = inner;
    node->set_name(call.renamed.at(inner.name()));
    node->clear_device();
    for (auto attr = node->mutable_attr()->begin(); attr != node->mutable_attr()->end();) {
      const bool hint = !attr->first.empty() && attr->first[0] == '_';
      attr = hint ? node->mutable_attr()->erase(attr) : std::next(attr);
    }
    for (std::string& input : *node->mutable_input()) input = NewInput(call, input);
    const bool has_effect = op == nullptr || op->is_stateful();
    if (has_effect && inner.input_size() > 0) {
      for (const std::string& control : call.controls) node->add_input(control);
    }
    if (op == nullptr) inliner_.origins_[{function_, node->name()}] = inliner_.OriginOf(callee, inner.name());
  }

  // The node that stood for the call. It runs after what the function does.
  void AddEnd(const Call& call) {
    std::set<std::string> controls(call.controls.begin(), call.controls.end());
    for (const std::string& effect : call.callee.effects) controls.insert(StrCat("^", call.renamed.at(effect)));
    for (const auto& [name, value] : call.callee.def.ret()) {
      const auto node = call.renamed.find(NodeOf(value));
      if (node != call.renamed.end()) controls.insert(StrCat("^", node->second));
    }
    proto::NodeDef* end = out_.Add();
    end->set_name(call.node.name());
    end->set_op("NoOp");
    for (const std::string& control : controls) end->add_input(control);
  }

  void AddResults(const Call& call) {
    const proto::FunctionDef& def = call.callee.def;
    for (int i = 0; i < def.signature().output_arg_size(); ++i) {
      std::string value = NewInput(call, def.ret().at(def.signature().output_arg(i).name()));
      if (!call.callee.waits[static_cast<size_t>(i)]) {
        proto::NodeDef* waiting = out_.Add();
        waiting->set_name(NewName(StrCat(call.node.name(), "/result_", i)));
        waiting->set_op("Identity");
        waiting->add_input(value);
        waiting->add_input(StrCat("^", call.node.name()));
        value = StrCat(waiting->name(), in_graph() ? ":0" : ":output:0");
      }
      values_[StrCat(call.node.name(), in_graph() ? ":" : ":output:", i)] = value;
    }
  }

  // Returns the input of a copied node for the input of a node of the function.
  std::string NewInput(const Call& call, const std::string& input) const {
    const std::string& callee = call.callee.def.signature().name();
    const auto arg = call.args.find(IsControl(input) ? input.substr(1) : input);
    if (arg != call.args.end()) return IsControl(input) ? StrCat("^", NodeOf(arg->second)) : arg->second;
    const auto renamed = call.renamed.find(NodeOf(input));
    if (renamed == call.renamed.end()) {
      throw InvalidArgumentError(StrCat("[graph] '", input, "' means nothing", In(callee)));
    }
    if (IsControl(input)) return StrCat("^", renamed->second);
    const size_t colon = input.find(':');
    if (colon == std::string::npos) {
      throw InvalidArgumentError(
          StrCat("[graph] expected an argument or 'node:output:index'", In(callee), "; got '", input, "'"));
    }
    const proto::NodeDef& node = *call.body.at(NodeOf(input));
    const OpDef* op = inliner_.foreign_.Find(node.op());
    // A value of an unknown op has no number. It matters only if the node is needed, and that is an error.
    if (!in_graph() || op == nullptr) return renamed->second + input.substr(colon);
    try {
      return StrCat(renamed->second, ":", FlatOutputIndex(*op, node, input, inliner_.budget_));
    } catch (const Error& error) {
      ThrowError(error.code(), StrCat("[graph] ", Describe(node, callee), ": ", error.what()));
    }
  }

  std::string NewName(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 1; !taken_.insert(name).second; ++i) name = StrCat(wanted, "_", i);
    return name;
  }

  // Returns what stands for an input of a node in the end. Keeps it for all values on the way there.
  std::string Resolve(const std::string& input) {
    if (IsControl(input) || replaced_.count(NodeOf(input)) == 0) return input;
    std::vector<std::string> seen;
    std::string value = Full(input);
    for (auto it = values_.find(value); it != values_.end(); it = values_.find(value)) {
      seen.push_back(value);
      value = Full(it->second);
      if (seen.size() <= values_.size()) continue;
      throw InvalidArgumentError(
          StrCat("[graph] the values of calls depend on each other in a circle; one is '", value, "'", In(function_)));
    }
    if (replaced_.count(NodeOf(value)) > 0) {
      throw InvalidArgumentError(StrCat("[graph] '", value, "' is no result of the call", In(function_)));
    }
    for (const std::string& name : seen) values_[name] = value;
    return value;
  }
  // In a graph, "node" means "node:0".
  std::string Full(const std::string& value) const {
    return in_graph() && value.find(':') == std::string::npos ? value + ":0" : value;
  }

  Inliner& inliner_;
  const std::string& function_;
  Nodes out_;
  std::unordered_set<std::string> taken_;
  std::unordered_set<std::string> replaced_;
  std::map<std::string, std::string> values_;
};

std::map<std::string, std::string> Inliner::ReplaceCalls(const std::string& function, Nodes& nodes) {
  return Caller(*this, function).Run(nodes);
}

}  // namespace

std::string InlinedValues::Of(const std::string& value) const {
  const auto it = values_.find(value);
  return it == values_.end() ? value : it->second;
}

InlinedValues KeepNeededPart(proto::GraphDef& def, const std::vector<std::string>& ends, const ForeignOps& foreign) {
  UseVariableHandles("", &def);
  return Inliner(def, foreign).Run(ends);
}

}  // namespace cohort
