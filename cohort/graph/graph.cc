#include "cohort/graph/graph.h"

#include <charconv>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/function.h"

namespace cohort {
namespace {

[[noreturn]] void FailTaken(const std::string& name, const std::string& op) {
  throw AlreadyExistsError(
      StrCat("[graph] the name '", name, "' for a ", op, " node is taken; choose another, or let it be made unique"));
}

}  // namespace

Node* Graph::FindNode(std::string_view name) const {
  MutexLock lock(mu_);
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

Output Graph::FindOutput(const std::string& name) const {
  const size_t colon = name.rfind(':');
  const std::string node_name = name.substr(0, colon);
  int index = 0;
  if (colon != std::string::npos) {
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + colon + 1, end, index);
    if (error != std::errc() || stop != end || index < 0) {
      throw InvalidArgumentError(StrCat("[graph] expected 'node' or 'node:index', got '", name, "'"));
    }
  }
  Node* node = FindNode(node_name);
  if (node == nullptr) {
    throw NotFoundError(StrCat("[graph] there is no node '", node_name, "' among the ", num_nodes(),
                               " nodes of the graph (looking for '", name, "')"));
  }
  if (index >= node->num_outputs()) {
    throw InvalidArgumentError(StrCat("[graph] '", name, "' asks for output ", index, " of ", node->Describe(),
                                      ", which has ", node->num_outputs(), " outputs"));
  }
  return {node, index};
}

int Graph::num_nodes() const {
  MutexLock lock(mu_);
  return static_cast<int>(nodes_.size());
}

std::vector<Node*> Graph::nodes() const {
  MutexLock lock(mu_);
  std::vector<Node*> all;
  all.reserve(nodes_.size());
  for (const auto& node : nodes_) all.push_back(node.get());
  return all;
}

void Graph::Finalize() {
  MutexLock lock(mu_);
  finalized_ = true;
}

bool Graph::finalized() const {
  MutexLock lock(mu_);
  return finalized_;
}

std::string Graph::UniqueName(const std::string& name) {
  const Scopes* open = FindScopes();
  const std::string prefix = open == nullptr || open->names.empty() ? "" : open->names.back();
  MutexLock lock(mu_);
  return UniqueNameLocked(prefix.empty() ? name : prefix + "/" + name);
}

std::string Graph::UniqueNameLocked(const std::string& name) {
  int& count = name_counts_[name];
  if (count == 0) {
    count = 1;
    return name;
  }
  while (true) {
    std::string candidate = name + "_" + std::to_string(count++);
    if (name_counts_.emplace(candidate, 1).second) return candidate;
  }
}

void Graph::TakeName(const std::string& name, const std::string& op) {
  MutexLock lock(mu_);
  if (by_name_.contains(name)) FailTaken(name, op);
  int& count = name_counts_[name];
  if (count == 0) count = 1;  // a name that UniqueName has set aside is for the node that comes to take it
}

void Graph::ReleaseName(const std::string& name) {
  MutexLock lock(mu_);
  const auto it = name_counts_.find(name);
  if (it != name_counts_.end() && it->second == 1 && !by_name_.contains(name)) name_counts_.erase(it);
}

void Graph::CheckNotFinal(const Node& node) const {
  if (finalized_) {
    throw FailedPreconditionError(StrCat("[graph] cannot add ", node.Describe(),
                                         ": the graph is finalized; build all of it before the session is made"));
  }
}

Node* Graph::Adopt(std::unique_ptr<Node> node) {
  MutexLock lock(mu_);
  CheckNotFinal(*node);
  Node* raw = node.get();
  raw->id_ = static_cast<int>(nodes_.size());
  if (!by_name_.emplace(raw->name(), raw).second) FailTaken(raw->name(), raw->op_name());
  nodes_.push_back(std::move(node));
  return raw;
}

VariableInfo* Graph::AddVariable(VariableInfo info) {
  MutexLock lock(mu_);
  variables_.push_back(std::move(info));
  return &variables_.back();
}

std::vector<VariableInfo*> Graph::variables() const {
  MutexLock lock(mu_);
  std::vector<VariableInfo*> all;
  all.reserve(variables_.size());
  for (const VariableInfo& info : variables_) all.push_back(const_cast<VariableInfo*>(&info));
  return all;
}

VariableInfo* Graph::CreateVariable(const VariableMaker& maker, const VariableRequest& request) {
  VariableMaker chain = maker;
  if (const Scopes* open = FindScopes()) {
    for (const VariableCreator& creator : open->creators) {
      chain = [creator, next = std::move(chain)](const VariableRequest& r) { return creator(next, r); };
    }
  }
  return chain(request);
}

void Graph::AddToCollection(const std::string& collection, Output value) {
  MutexLock lock(mu_);
  collections_[collection].push_back(value);
}

std::vector<Output> Graph::collection(const std::string& collection) const {
  MutexLock lock(mu_);
  const auto it = collections_.find(collection);
  return it == collections_.end() ? std::vector<Output>() : it->second;
}

const Function& Graph::DefineFunction(const std::string& name, const std::vector<FunctionArg>& args,
                                      const FunctionBody& body) {
  auto function = std::make_shared<const Function>(name, args, body);
  AddFunction(function);
  return *function;
}

void Graph::AddFunction(std::shared_ptr<const Function> function) {
  MutexLock lock(mu_);
  const std::string name = function->name();
  if (!functions_.emplace(name, std::move(function)).second) {
    throw AlreadyExistsError(StrCat("[graph] the library has a function '", name, "' already; choose another name"));
  }
}

std::shared_ptr<const Function> Graph::FindFunction(std::string_view name) const {
  MutexLock lock(mu_);
  const auto it = functions_.find(name);
  return it == functions_.end() ? nullptr : it->second;
}

std::vector<std::shared_ptr<const Function>> Graph::functions() const {
  MutexLock lock(mu_);
  std::vector<std::shared_ptr<const Function>> all;
  for (const auto& [name, function] : functions_) all.push_back(function);
  return all;
}

}  // namespace cohort
