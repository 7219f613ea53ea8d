#include "cohort/graph/function.h"

#include <algorithm>
#include <cctype>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/function_draft.h"

namespace cohort {
namespace {

bool IsName(const std::string& name) {
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string("_.-/").find(c) != std::string::npos;
  };
  return !name.empty() && (std::isalpha(static_cast<unsigned char>(name[0])) != 0 || name[0] == '_') &&
         std::all_of(name.begin(), name.end(), fits);
}

std::string Describe(const Output& value) { return StrCat(value.dtype(), value.shape()); }

}  // namespace

void FillBody(const std::string& name, const std::vector<FunctionArg>& args, const FunctionBody& body, Graph& graph,
              std::vector<Output>* arguments, std::vector<Output>* results) {
  if (!body) throw InvalidArgumentError(StrCat("[graph] expected a body for the function '", name, "'; got none"));
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].dtype == DType::kInvalid) {
      throw InvalidArgumentError(
          StrCat("[graph] expected a dtype for argument ", i, " of the function '", name, "'; got none"));
    }
    FunctionArg arg = args[i];
    if (arg.name.empty()) arg.name = StrCat("arg", i);
    arguments->push_back(AddArgument(graph, arg));
  }
  *results = body(graph, *arguments);
}

Function::Function(std::string name, const std::vector<FunctionArg>& args, const FunctionBody& body)
    : name_(std::move(name)), graph_(std::make_unique<Graph>()) {
  FillBody(name_, args, body, *graph_, &args_, &results_);
  Check();
}

Function::Function(std::string name, std::unique_ptr<Graph> graph, std::vector<Output> args,
                   std::vector<Output> results)
    : name_(std::move(name)), graph_(std::move(graph)), args_(std::move(args)), results_(std::move(results)) {
  Check();
}

void Function::Check() const {
  if (!IsName(name_)) {
    throw InvalidArgumentError(StrCat(
        "[graph] expected a function's name of letters, digits and _.-/ that begins with a letter; got '", name_, "'"));
  }
  for (const Output& arg : args_) {
    if (arg.valid() && &arg.graph() == graph_.get() && arg.node->op_name() == "Placeholder") continue;
    throw InvalidArgumentError(StrCat("[graph] expected placeholders of the body as arguments of the function '", name_,
                                      "'; got ", arg.valid() ? arg.node->Describe() : "none"));
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    if (results_[i].valid() && &results_[i].graph() == graph_.get()) continue;
    throw InvalidArgumentError(StrCat("[graph] expected result ", i, " of the function '", name_,
                                      "' to be a value of its body; got ",
                                      results_[i].valid() ? results_[i].name() + " of another graph" : "none"));
  }
}

bool Function::is_stateful() const {
  const std::vector<Node*> nodes = graph_->nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return node->op().is_stateful(); });
}

std::shared_ptr<const void> Function::FindDerived(const std::string& key) const {
  MutexLock lock(mu_);
  const auto it = derived_.find(key);
  return it == derived_.end() ? nullptr : it->second;
}

void Function::KeepDerived(const std::string& key, std::shared_ptr<const void> derived) const {
  MutexLock lock(mu_);
  derived_.emplace(key, std::move(derived));
}

std::string Function::Signature() const {
  std::vector<std::string> args, results;
  for (const Output& arg : args_) args.push_back(StrCat(arg.node->name(), ": ", Describe(arg)));
  for (const Output& result : results_) results.push_back(Describe(result));
  return StrCat(name_, "(", StrJoin(args, ", "), ") -> (", StrJoin(results, ", "), ")");
}

}  // namespace cohort
