// The functions that declare an op, its signature as text, and the check that inputs and outputs name attributes that
// exist.
#include "cohort/graph/op_def.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/op_def_parser.h"

namespace cohort {
namespace {

void CheckNewName(const std::string& op, const std::vector<ArgDef>& args, const std::string& name) {
  for (const ArgDef& arg : args) {
    if (arg.name == name) throw InvalidArgumentError(StrCat("[graph] op ", op, ": '", name, "' is declared twice"));
  }
}

void AppendArg(const std::string& op, std::vector<ArgDef>& args, const std::string& spec, bool host) {
  ArgDef arg = ParseArgSpec(op, spec);
  CheckNewName(op, args, arg.name);
  arg.host_memory = host;
  args.push_back(std::move(arg));
}

}  // namespace

OpDef&& OpDef::Input(const std::string& spec) && {
  AppendArg(name_, inputs_, spec, false);
  return std::move(*this);
}

OpDef&& OpDef::HostInput(const std::string& spec) && {
  AppendArg(name_, inputs_, spec, true);
  return std::move(*this);
}

OpDef&& OpDef::Output(const std::string& spec) && {
  AppendArg(name_, outputs_, spec, false);
  return std::move(*this);
}

OpDef&& OpDef::HostOutput(const std::string& spec) && {
  AppendArg(name_, outputs_, spec, true);
  return std::move(*this);
}

OpDef&& OpDef::Attr(const std::string& spec) && {
  AttrDef def = ParseAttrSpec(name_, spec);
  if (FindAttr(def.name) != nullptr) {
    throw InvalidArgumentError(StrCat("[graph] op ", name_, ": attribute '", spec, "' is declared twice"));
  }
  attrs_.push_back(std::move(def));
  return std::move(*this);
}

OpDef&& OpDef::ShapeRule(ShapeFn fn) && {
  shape_fn_ = std::move(fn);
  return std::move(*this);
}

OpDef&& OpDef::Gradient(GradientFn fn) && {
  gradient_fn_ = std::move(fn);
  return std::move(*this);
}

OpDef&& OpDef::NotDifferentiable(std::string reason) && {
  not_differentiable_ = std::move(reason);
  return std::move(*this);
}

OpDef&& OpDef::Stateful() && {
  stateful_ = true;
  return std::move(*this);
}

OpDef&& OpDef::UpdatesVariable() && {
  updates_variable_ = true;
  return std::move(*this);
}

OpDef&& OpDef::AddsToResource() && {
  adds_to_resource_ = true;
  return std::move(*this);
}

OpDef&& OpDef::Elementwise() && {
  traits_.elementwise = true;
  return std::move(*this);
}

OpDef&& OpDef::Broadcasting() && {
  traits_.broadcasting = true;
  return std::move(*this);
}

OpDef&& OpDef::Activation() && {
  traits_.activation = true;
  return std::move(*this).Elementwise();
}

OpDef&& OpDef::ActivationGradient(int gradient) && {
  if (gradient != 0 && gradient != 1) {
    throw InvalidArgumentError(
        StrCat("[graph] op ", name_, ": expected the gradient to be input 0 or 1; got input ", gradient));
  }
  traits_.activation_gradient = gradient;
  return std::move(*this).Elementwise();
}

OpDef&& OpDef::ReadsShapeOnly() && {
  traits_.reads_shape_only = true;
  return std::move(*this);
}

OpDef&& OpDef::DataDependentShape() && {
  traits_.data_dependent_shape = true;
  return std::move(*this);
}

OpDef&& OpDef::KeepsLastInput() && {
  traits_.keeps_last_input = true;
  return std::move(*this);
}

OpDef&& OpDef::ReturnsKeptValue() && {
  traits_.returns_kept_value = true;
  return std::move(*this);
}

OpDef&& OpDef::Doc(std::string text) && {
  doc_ = std::move(text);
  return std::move(*this);
}

const AttrDef* OpDef::FindAttr(std::string_view name) const {
  for (const AttrDef& def : attrs_) {
    if (def.name == name) return &def;
  }
  return nullptr;
}

std::string OpDef::Signature() const {
  std::string text = name_ + "(";
  const char* between = "";
  for (const ArgDef& arg : inputs_) {
    text += between + FormatArgDef(arg);
    between = ", ";
  }
  text += ") -> (";
  between = "";
  for (const ArgDef& arg : outputs_) {
    text += between + FormatArgDef(arg);
    between = ", ";
  }
  text += ")";
  for (const AttrDef& def : attrs_) text += "; " + FormatAttrDef(def);
  if (stateful_) text += "; stateful";
  if (updates_variable_) text += "; updates variable";
  return text;
}

void OpDef::ResolveArgs() {
  for (ArgDef& arg : inputs_) ResolveArg(arg);
  for (ArgDef& arg : outputs_) ResolveArg(arg);
}

void OpDef::ResolveArg(ArgDef& arg) const {
  const auto fail = [&](const std::string& attr, const std::string& why) {
    throw InvalidArgumentError(StrCat("[graph] op ", name_, ": '", FormatArgDef(arg), "' needs an attribute '", attr,
                                      "' ", why, "; the op has ", attrs_.size(), " attributes"));
  };
  if (!arg.number_attr.empty()) {
    const AttrDef* number = FindAttr(arg.number_attr);
    if (number == nullptr || number->kind != AttrKind::kInt) fail(arg.number_attr, "of type int");
  }
  if (arg.type_attr.empty()) return;
  const AttrDef* type = FindAttr(arg.type_attr);
  if (type != nullptr && type->kind == AttrKind::kListType && arg.number_attr.empty()) {
    arg.type_list_attr = std::exchange(arg.type_attr, "");
  } else if (type == nullptr || type->kind != AttrKind::kType) {
    fail(arg.type_attr, arg.number_attr.empty() ? "of type type or list(type)" : "of type type");
  }
}

}  // namespace cohort
