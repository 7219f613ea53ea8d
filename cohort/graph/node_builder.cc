// Adds one node, in this order (Finish): choose the graph, in case an input is a value of a function's body; choose the
// name; check the inputs; infer attributes from them; check all attributes; compute dtypes and shapes of the outputs;
// apply the scopes; hand the node over to the graph. If a stage throws, the name is free again.
#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/constant_value.h"
#include "cohort/graph/device_name.h"
#include "cohort/graph/graph.h"
#include "cohort/graph/op_def_parser.h"

namespace cohort {
namespace {

[[noreturn]] void Fail(const Node& node, const std::string& message) {
  throw InvalidArgumentError(StrCat("[graph] ", node.Describe(), ": ", message));
}

bool IsAlnum(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// Limits for graphs from elsewhere. An attribute of a few bytes can ask for any number of outputs. Shape rules add and
// multiply dimensions and do not check each sum; with these limits the sums fit into 64 bits.
constexpr size_t kMaxOutputs = 1 << 14;
constexpr int64_t kMaxDim = int64_t{1} << 40;

// TensorFlow's rule for the names of nodes; passes may also begin with '_'.
bool IsNodeName(const std::string& name, bool underscore_first) {
  if (name.empty()) return false;
  if (!IsAlnum(name[0]) && name[0] != '.' && !(underscore_first && name[0] == '_')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return IsAlnum(c) || c == '_' || c == '.' || c == '\\' || c == '-' || c == '/' || c == '>';
  });
}

bool IsListArg(const ArgDef& arg) { return !arg.number_attr.empty() || !arg.type_list_attr.empty(); }

template <typename T>
void AppendNew(std::vector<T>& list, const T& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

// Sets attributes from inputs and remembers which input or caller said so.
class AttrInference {
 public:
  AttrInference(const Node& node, AttrMap& attrs) : node_(node), attrs_(attrs) {
    for (const auto& [name, value] : attrs) origin_[name] = "the caller";
  }

  // Makes an empty list without a type, which a GraphDef gives, a list of dtypes.
  void GiveType(const std::string& attr) {
    const auto it = attrs_.find(attr);
    const auto* none = it == attrs_.end() ? nullptr : it->second.get<std::vector<int64_t>>();
    if (none != nullptr && none->empty()) it->second = std::vector<DType>();
  }

  void Set(const std::string& attr, AttrValue value, const std::string& input, const char* property) {
    const auto [it, added] = attrs_.emplace(attr, value);
    if (added) {
      origin_[attr] = "input '" + input + "'";
    } else if (!(it->second == value)) {
      Fail(node_, StrCat("input '", input, "' has ", property, " ", value.ToString(), ", but attribute '", attr,
                         "' is ", it->second.ToString(), " by ", origin_[attr], "; they must be the same"));
    }
  }

 private:
  const Node& node_;
  AttrMap& attrs_;
  std::map<std::string, std::string> origin_;
};

}  // namespace

NodeBuilder& NodeBuilder::Name(const NodeName& name) {
  name_ = name.text();
  exact_name_ = false;
  return At(name.site());
}

NodeBuilder& NodeBuilder::ExactName(std::string name) {
  name_ = std::move(name);
  exact_name_ = true;
  return *this;
}

NodeBuilder& NodeBuilder::Input(cohort::Output value) {
  args_.push_back({{value}, false});
  return *this;
}

NodeBuilder& NodeBuilder::Inputs(const std::vector<cohort::Output>& values) {
  args_.push_back({values, true});
  return *this;
}

NodeBuilder& NodeBuilder::Attr(std::string name, AttrValue value) {
  attrs_.insert_or_assign(std::move(name), std::move(value));
  return *this;
}

NodeBuilder& NodeBuilder::Attrs(const AttrMap& attrs) {
  for (const auto& [name, value] : attrs) attrs_.insert_or_assign(name, value);
  return *this;
}

NodeBuilder& NodeBuilder::Device(std::string device) {
  device_ = std::move(device);
  return *this;
}

NodeBuilder& NodeBuilder::Control(Node* node) {
  controls_.push_back(node);
  return *this;
}

NodeBuilder& NodeBuilder::Colocate(std::string node_name) {
  AppendNew(colocate_, node_name);
  return *this;
}

NodeBuilder& NodeBuilder::IgnoreScopes() {
  ignore_scopes_ = true;
  return *this;
}

Node* NodeBuilder::Finish() {
  const OpDef& op = OpRegistry::Global().Get(op_);
  EnterBody();
  auto node = std::make_unique<Node>();
  node->graph_ = graph_;
  node->op_ = &op;
  node->site_ = site_.file != nullptr ? site_ : graph_->ScopedSite();
  ChooseName(*node);
  const std::string name = node->name_;
  try {
    CollectInputs(op, *node);
    InferAttrs(op, *node);
    CheckAttrs(op, *node);
    ResolveOutputs(op, *node);
    for (Node* control : controls_) node->AddControlInput(control);
    ApplyScopes(*node);
    return graph_->Adopt(std::move(node));
  } catch (...) {
    graph_->ReleaseName(name);
    throw;
  }
}

void NodeBuilder::Redefine(Node& node) {
  graph_->CheckCanChange(node);
  Node draft;
  draft.graph_ = graph_;
  draft.op_ = node.op_;
  draft.name_ = node.name_;
  CollectInputs(*node.op_, draft);
  InferAttrs(*node.op_, draft);
  CheckAttrs(*node.op_, draft);
  ResolveOutputs(*node.op_, draft);
  const std::vector<DType>& before = node.output_dtypes_;
  if (draft.output_dtypes_.size() < before.size() ||
      !std::equal(before.begin(), before.end(), draft.output_dtypes_.begin())) {
    Fail(node, StrCat("its outputs ", AttrValue(before).ToString(), " cannot become ",
                      AttrValue(draft.output_dtypes_).ToString()));
  }
  node.attrs_ = std::move(draft.attrs_);
  node.inputs_ = std::move(draft.inputs_);
  node.input_args_ = std::move(draft.input_args_);
  node.output_args_ = std::move(draft.output_args_);
  node.output_dtypes_ = std::move(draft.output_dtypes_);
  node.output_shapes_ = std::move(draft.output_shapes_);
}

void NodeBuilder::EnterBody() {
  for (const Arg& arg : args_) {
    for (const cohort::Output& value : arg.values) {
      if (value.valid() && value.graph().IsInside(*graph_)) graph_ = &value.graph();
    }
  }
  for (Arg& arg : args_) {
    for (cohort::Output& value : arg.values) {
      if (!value.valid() || &value.graph() == graph_) continue;
      const cohort::Output captured = graph_->Capture(value);
      if (captured.valid()) value = captured;
    }
  }
}

void NodeBuilder::ChooseName(Node& node) {
  // The name of an internal op begins with '_', which a node's name must not.
  const std::string name = !name_.empty() ? name_ : op_.substr(op_[0] == '_' ? 1 : 0);
  if (!IsNodeName(name, exact_name_ || ignore_scopes_)) {
    throw InvalidArgumentError(StrCat("[graph] '", name, "' is not a name for a ", op_,
                                      " node; expected a letter, digit or '.', then letters, digits and _.-/\\>"));
  }
  if (exact_name_) {
    graph_->TakeName(name, op_);
    node.name_ = name;
  } else {
    node.name_ = graph_->UniqueName(name);
  }
}

void NodeBuilder::CollectInputs(const OpDef& op, Node& node) {
  for (size_t i = 0; i < args_.size(); ++i) {
    for (const cohort::Output& value : args_[i].values) {
      if (!value.valid() || value.index < 0 || value.index >= value.node->num_outputs()) {
        Fail(node, StrCat("argument ", i, " is no value: ",
                          value.valid() ? "there is no output " + value.name() : "it is an empty Output"));
      }
      if (&value.graph() != graph_) Fail(node, StrCat("argument ", i, ", ", value.name(), ", is of another graph"));
      node.inputs_.push_back(value);
      node.input_args_.push_back(i);
    }
  }
  if (args_.size() != op.inputs().size()) {
    Fail(node,
         StrCat("expected ", op.inputs().size(), " arguments, got ", args_.size(), "; the op is ", op.Signature()));
  }
  for (size_t i = 0; i < args_.size(); ++i) {
    const ArgDef& arg = op.inputs()[i];
    if (args_[i].is_list != IsListArg(arg)) {
      Fail(node, StrCat("input '", FormatArgDef(arg), "' expects ", IsListArg(arg) ? "a list (Inputs)" : "one value",
                        ", got ", args_[i].is_list ? "a list" : "one value (Input)"));
    }
  }
}

// TensorFlow's form of a colocation: attribute _class = ["loc:@name"].
void NodeBuilder::TakeColocation() {
  const auto it = attrs_.find("_class");
  const auto* classes = it == attrs_.end() ? nullptr : it->second.get<std::vector<std::string>>();
  if (classes == nullptr) return;
  std::vector<std::string> others;
  for (const std::string& name : *classes) {
    if (name.rfind("loc:@", 0) == 0) {
      AppendNew(colocate_, name.substr(5));
    } else {
      others.push_back(name);
    }
  }
  if (others.empty()) {
    attrs_.erase(it);
  } else {
    it->second = AttrValue(std::move(others));
  }
}

void NodeBuilder::InferAttrs(const OpDef& op, Node& node) {
  TakeColocation();
  node.attrs_ = std::move(attrs_);
  AttrInference inference(node, node.attrs_);
  for (size_t i = 0; i < args_.size(); ++i) {
    const ArgDef& arg = op.inputs()[i];
    const std::vector<cohort::Output>& values = args_[i].values;
    if (!arg.number_attr.empty()) {
      inference.Set(arg.number_attr, static_cast<int64_t>(values.size()), arg.name, "length");
    }
    if (!arg.type_list_attr.empty()) {
      std::vector<DType> dtypes;
      for (const cohort::Output& value : values) dtypes.push_back(value.dtype());
      inference.GiveType(arg.type_list_attr);
      inference.Set(arg.type_list_attr, std::move(dtypes), arg.name, "dtypes");
      continue;
    }
    for (const cohort::Output& value : values) {
      if (!arg.type_attr.empty()) {
        inference.Set(arg.type_attr, value.dtype(), arg.name, "dtype");
      } else if (value.dtype() != arg.dtype) {
        Fail(node,
             StrCat("input '", arg.name, "' must be ", arg.dtype, ", got ", value.dtype(), " (", value.name(), ")"));
      }
    }
  }
}

void NodeBuilder::CheckAttrs(const OpDef& op, Node& node) {
  for (const AttrDef& def : op.attrs()) {
    const auto it = node.attrs_.find(def.name);
    if (it == node.attrs_.end()) {
      if (!def.default_value) {
        Fail(node, StrCat("attribute '", FormatAttrDef(def), "' is missing and follows from no input; give it"));
      }
      node.attrs_.emplace(def.name, *def.default_value);
      continue;
    }
    const std::string problem = CheckAttrValue(def, it->second);
    if (!problem.empty()) Fail(node, problem);
  }
  for (const auto& [name, value] : node.attrs_) {
    if (!name.empty() && (name[0] == '_' || op.FindAttr(name) != nullptr)) continue;
    std::vector<std::string> known;
    for (const AttrDef& def : op.attrs()) known.push_back(def.name);
    Fail(node, StrCat("there is no attribute '", name, "' (given as ", value.ToString(), "); the op has ",
                      known.empty() ? "none" : StrJoin(known, ", ")));
  }
}

void NodeBuilder::ResolveOutputs(const OpDef& op, Node& node) {
  for (size_t i = 0; i < op.outputs().size(); ++i) {
    const ArgDef& arg = op.outputs()[i];
    std::vector<DType> dtypes;
    if (!arg.type_list_attr.empty()) {
      dtypes = node.attr<std::vector<DType>>(arg.type_list_attr);
    } else {
      const int64_t count = arg.number_attr.empty() ? 1 : node.attr<int64_t>(arg.number_attr);
      if (count < 0) Fail(node, StrCat("attribute '", arg.number_attr, "' must not be negative, got ", count));
      if (count > static_cast<int64_t>(kMaxOutputs)) {
        Fail(node, StrCat("expected at most ", kMaxOutputs, " outputs; got ", count, " by attribute '", arg.number_attr,
                          "'"));
      }
      dtypes.assign(static_cast<size_t>(count), arg.type_attr.empty() ? arg.dtype : node.attr<DType>(arg.type_attr));
    }
    node.output_dtypes_.insert(node.output_dtypes_.end(), dtypes.begin(), dtypes.end());
    node.output_args_.insert(node.output_args_.end(), dtypes.size(), i);
  }
  const size_t count = node.output_dtypes_.size();
  if (!op.shape_fn()) {
    node.output_shapes_.assign(count, Shape::UnknownRank());
    return;
  }
  try {
    const StaticFacts facts(node.inputs_);
    ShapeContext context(node.attrs_, facts);
    node.output_shapes_ = op.shape_fn()(context);
  } catch (const Error& error) {
    ThrowError(error.code(), StrCat("[graph] ", node.Describe(), ": ", error.what()));
  }
  if (node.output_shapes_.size() != count) {
    throw InternalError(StrCat("[graph] ", node.Describe(), ": the shape rule gave ", node.output_shapes_.size(),
                               " shapes for ", count, " outputs"));
  }
  for (const Shape& shape : node.output_shapes_) {
    for (const int64_t dim : shape.dims()) {
      if (dim > kMaxDim) Fail(node, StrCat("expected dimensions of at most 2^40; got the output shape ", shape));
    }
  }
}

void NodeBuilder::ApplyScopes(Node& node) {
  node.colocate_with_ = std::move(colocate_);
  const Graph::Scopes* open = ignore_scopes_ ? nullptr : graph_->FindScopes();
  std::string device = device_;
  bool colocated = false;
  if (open != nullptr) {
    for (auto frame = open->controls.rbegin(); frame != open->controls.rend(); ++frame) {
      if (frame->size() == 1 && frame->front() == nullptr) break;
      for (Node* control : *frame) node.AddControlInput(control);
    }
    for (auto target = open->colocate.rbegin(); target != open->colocate.rend() && *target != nullptr; ++target) {
      colocated = true;
      if (device.empty()) device = (*target)->device();
      if ((*target)->colocate_with_.empty()) AppendNew(node.colocate_with_, (*target)->name_);
      for (const std::string& name : (*target)->colocate_with_) AppendNew(node.colocate_with_, name);
    }
  }
  if (!colocated && !ignore_scopes_ && !node.colocate_with_.empty()) {
    const Node* target = graph_->FindNode(node.colocate_with_.front());
    if (target != nullptr) {
      colocated = true;
      if (device.empty()) device = target->device();
    }
  }
  if (!colocated && open != nullptr && !open->devices.empty()) {
    const bool has_output = node.num_outputs() > 0;
    DType dtype = has_output ? node.output_dtype(0) : DType::kInvalid;
    Shape shape = has_output ? node.output_shape(0) : Shape();
    if (dtype == DType::kResource && node.has_attr("dtype") && node.has_attr("shape")) {
      dtype = node.attr<DType>("dtype");
      shape = node.attr<Shape>("shape");
    }
    device = Graph::ApplyDeviceScopes(*open, {op_, node.name_, device, dtype, shape});
  }
  node.device_ = DeviceName::Parse(device).ToString();
}

}  // namespace cohort
