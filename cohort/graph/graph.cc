// Nodes, names, variables, collections and the function library of a graph. The last part is for bodies of functions: a
// body knows the graph around it (outer_), shares its library, and captures its values.
#include "cohort/graph/graph.h"

#include <charconv>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/function_draft.h"

namespace cohort {
namespace {

[[noreturn]] void FailTaken(const std::string& name, const std::string& op) {
  throw AlreadyExistsError(
      StrCat("[graph] the name '", name, "' for a ", op, " node is taken; choose another, or let it be made unique"));
}

}  // namespace

struct Graph::Library {
  Mutex mu;
  std::map<std::string, std::shared_ptr<const Function>, std::less<>> functions COHORT_GUARDED_BY(mu);
};

Graph::Graph() : own_library_(std::make_shared<Library>()) {}

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
  if (count == 0) count = 1;  // UniqueName may have reserved the name for this node
}

void Graph::ReleaseName(const std::string& name) {
  MutexLock lock(mu_);
  const auto it = name_counts_.find(name);
  if (it != name_counts_.end() && it->second == 1 && !by_name_.contains(name)) name_counts_.erase(it);
}

void Graph::CheckNotFinal(const Node& node) const {
  if (finalized_) {
    throw FailedPreconditionError(
        StrCat("[graph] cannot add or change ", node.Describe(),
               ": the graph is finalized; build all of it before the session is made. Each Supervisor and "
               "MonitoredTrainingSession needs a graph of its own"));
  }
}

void Graph::CheckCanChange(const Node& node) const {
  MutexLock lock(mu_);
  CheckNotFinal(node);
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

std::shared_ptr<Graph::Library> Graph::library() const {
  std::shared_ptr<Library> library = own_library_ != nullptr ? own_library_ : shared_library_.lock();
  if (library == nullptr) {
    throw FailedPreconditionError("[graph] the graph that this function's body belongs to is gone, and its library");
  }
  return library;
}

const Function& Graph::DefineFunction(const std::string& name, const std::vector<FunctionArg>& args,
                                      const FunctionBody& body) {
  FunctionDraft draft(*this, name, args, body);
  if (!draft.captures().empty()) {
    throw InvalidArgumentError(StrCat("[graph] the function '", name, "' uses ", draft.captures()[0].name(),
                                      ", a value of the graph around it; make that an argument"));
  }
  return *draft.Finish(name);
}

void Graph::AddFunction(std::shared_ptr<const Function> function) {
  const std::shared_ptr<Library> library = this->library();
  MutexLock lock(library->mu);
  const std::string name = function->name();
  if (!library->functions.emplace(name, std::move(function)).second) {
    throw AlreadyExistsError(StrCat("[graph] the library has a function '", name, "' already; choose another name"));
  }
}

std::shared_ptr<const Function> Graph::FindFunction(std::string_view name) const {
  const std::shared_ptr<Library> library = this->library();
  MutexLock lock(library->mu);
  const auto it = library->functions.find(name);
  return it == library->functions.end() ? nullptr : it->second;
}

std::vector<std::shared_ptr<const Function>> Graph::functions() const {
  const std::shared_ptr<Library> library = this->library();
  MutexLock lock(library->mu);
  std::vector<std::shared_ptr<const Function>> all;
  for (const auto& [name, function] : library->functions) all.push_back(function);
  return all;
}

std::string Graph::UniqueFunctionName(const std::string& base) const {
  std::string name = base;
  for (int i = 1; FindFunction(name) != nullptr; ++i) name = StrCat(base, "_", i);
  return name;
}

std::unique_ptr<Graph> Graph::NewBody() {
  auto body = std::make_unique<Graph>();
  body->own_library_ = nullptr;
  body->shared_library_ = library();
  body->outer_ = this;
  return body;
}

bool Graph::IsInside(const Graph& graph) const {
  for (const Graph* around = outer_; around != nullptr; around = around->outer_) {
    if (around == &graph) return true;
  }
  return false;
}

Output Graph::Capture(const Output& value) {
  if (!value.valid() || !IsInside(value.graph())) return {};
  if (&value.graph() != outer_) {
    const Output nearer = outer_->Capture(value);
    return nearer.valid() ? Capture(nearer) : Output{};
  }
  const bool is_constant = value.node->op_name() == "Const";
  std::vector<CapturedValue>& known = is_constant ? copied_constants_ : captures_;
  for (const CapturedValue& captured : known) {
    if (captured.outside == value) return captured.argument;
  }
  Output argument;
  if (is_constant) {
    argument = Op("Const").Name(value.node->name()).Attrs(value.node->attrs()).IgnoreScopes().Finish1();
  } else {
    argument = AddArgument(*this, ArgumentLike(value, "captured"));
  }
  known.push_back({value, argument});
  return argument;
}

}  // namespace cohort
