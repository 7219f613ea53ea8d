#include "cohort/checkpoint/init_from_checkpoint.h"

#include <regex>

#include "cohort/checkpoint/checkpoint_reader.h"
#include "cohort/checkpoint/ops.h"
#include "cohort/checkpoint/stored_variable.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/constant.h"

namespace cohort::train {
namespace {

constexpr const char* kLog = "train";
using Strings = std::vector<std::string>;

// The variables by the names that checkpoints have: the parts of a variable have the name of the whole.
using VariablesByName = std::map<std::string, std::vector<VariableInfo*>>;

std::string NameInFiles(const VariableInfo& variable) {
  return variable.rows_of ? variable.rows_of->name : variable.name;
}

VariablesByName VariablesOf(const Graph& graph) {
  VariablesByName all;
  for (VariableInfo* variable : graph.variables()) {
    if (!variable->local) all[NameInFiles(*variable)].push_back(variable);
  }
  return all;
}

// Makes variables begin with tensors of one checkpoint.
class Initializer {
 public:
  Initializer(Graph& graph, const std::string& ckpt_dir_or_file)
      : graph_(graph),
        reader_(ckpt_dir_or_file),
        shapes_(reader_.GetVariableToShapeMap()),
        dtypes_(reader_.GetVariableToDtypeMap()) {}

  void Set(const std::vector<VariableInfo*>& parts, const std::string& tensor) {
    for (VariableInfo* variable : parts) SetOne(*variable, tensor);
    LogInfo(kLog, "Initialize variable ", NameInFiles(*parts.front()), " from checkpoint ", reader_.prefix(), " with ",
            tensor);
  }

 private:
  void SetOne(VariableInfo& variable, const std::string& tensor) {
    const auto found = shapes_.find(tensor);
    if (found == shapes_.end()) {
      throw NotFoundError(StrCat("[train] expected a tensor '", tensor, "' for the variable '", variable.name,
                                 "' in the checkpoint ", reader_.prefix(), "; it has none of this name"));
    }
    const Shape& whole = variable.rows_of ? variable.rows_of->shape : variable.shape;
    if (found->second != whole || dtypes_.at(tensor) != variable.dtype) {
      throw InvalidArgumentError(StrCat("[train] expected a tensor ", variable.dtype, whole, " for the variable '",
                                        variable.name, "'; '", tensor, "' in the checkpoint ", reader_.prefix(), " is ",
                                        dtypes_.at(tensor), found->second));
    }
    const ControlDependencies none(graph_, nullptr);
    const NameScope scope(graph_, "init_from_checkpoint");
    const std::string slice = StoredVariable::Of(variable).ShapeAndSliceText();
    const Output value = ops::RestoreV2(ops::Const(graph_, reader_.prefix()), ops::Const(graph_, Strings{tensor}),
                                        ops::Const(graph_, Strings{slice}), {variable.dtype})[0];
    variable.initializer->ReplaceInput(1, value);
    variable.initial_value = value;
  }

  Graph& graph_;
  const CheckpointReader reader_;
  const std::map<std::string, Shape> shapes_;
  const std::map<std::string, DType> dtypes_;
};

// The scope without its "/" at the end: "" for "/".
std::string Prefix(const std::string& scope) { return scope == "/" ? "" : scope; }

void SetScope(Initializer& initializer, const VariablesByName& variables, const std::string& from,
              const std::string& to) {
  if (!from.ends_with('/')) {
    throw InvalidArgumentError(
        StrCat("[train] expected a scope that ends in '/' for the scope '", to, "'; got '", from, "'"));
  }
  bool any = false;
  for (const auto& [name, parts] : variables) {
    if (!name.starts_with(Prefix(to))) continue;
    initializer.Set(parts, Prefix(from) + name.substr(Prefix(to).size()));
    any = true;
  }
  if (!any) throw NotFoundError(StrCat("[train] expected a variable in the scope '", to, "'; there is none"));
}

void SetNamed(Initializer& initializer, const VariablesByName& variables, const std::string& from,
              const std::string& to) {
  if (to.ends_with('/')) return SetScope(initializer, variables, from, to);
  const auto found = variables.find(to);
  if (found == variables.end()) throw NotFoundError(StrCat("[train] expected a variable '", to, "'; there is none"));
  initializer.Set(found->second, from);
}

std::vector<VariableInfo*> PartsOf(const ops::Variable& variable) {
  std::vector<VariableInfo*> parts;
  for (const ops::Variable& part : variable.parts()) parts.push_back(part.info());
  if (parts.empty()) parts.push_back(variable.info());
  return parts;
}

std::regex Compiled(const std::string& expression) {
  try {
    return std::regex(expression);
  } catch (const std::regex_error& error) {
    throw InvalidArgumentError(
        StrCat("[train] expected a regular expression in vars_to_warm_start; got '", expression, "': ", error.what()));
  }
}

// The variables that the settings select.
VariablesByName Selected(const Graph& graph, const WarmStartSettings& settings) {
  const auto* one = std::get_if<std::string>(&settings.vars_to_warm_start);
  const Strings expressions = one != nullptr ? Strings{*one} : std::get<Strings>(settings.vars_to_warm_start);
  VariablesByName selected;
  for (const auto& [name, parts] : VariablesOf(graph)) {
    if (one != nullptr && !parts.front()->trainable) continue;
    for (const std::string& expression : expressions) {
      if (!std::regex_search(name, Compiled(expression), std::regex_constants::match_continuous)) continue;
      selected[name] = parts;
      break;
    }
  }
  return selected;
}

}  // namespace

void InitFromCheckpoint(Graph& graph, const std::string& ckpt_dir_or_file,
                        const std::map<std::string, AssignmentTarget>& assignment_map) {
  Initializer initializer(graph, ckpt_dir_or_file);
  const VariablesByName variables = VariablesOf(graph);
  for (const auto& [from, to] : assignment_map) {
    if (const auto* name = std::get_if<std::string>(&to)) {
      SetNamed(initializer, variables, from, *name);
    } else {
      initializer.Set(PartsOf(std::get<ops::Variable>(to)), from);
    }
  }
}

void WarmStart(Graph& graph, const WarmStartSettings& settings) {
  const VariablesByName selected = Selected(graph, settings);
  for (const auto& [name, previous] : settings.var_name_to_prev_var_name) {
    if (selected.contains(name)) continue;
    throw InvalidArgumentError(StrCat("[train] expected names of variables that are warm-started in ",
                                      "var_name_to_prev_var_name; got '", name, "'"));
  }
  Initializer initializer(graph, settings.ckpt_to_initialize_from);
  for (const auto& [name, parts] : selected) {
    const auto renamed = settings.var_name_to_prev_var_name.find(name);
    initializer.Set(parts, renamed == settings.var_name_to_prev_var_name.end() ? name : renamed->second);
  }
}

}  // namespace cohort::train
