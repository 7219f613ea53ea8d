#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/graph/device_name.h"
#include "cohort/graph/graph.h"

namespace cohort {
namespace {

bool IsScopeName(const std::string& name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-' || c == '/' || c == '>';
  });
}

}  // namespace

Graph::Scopes& Graph::scopes() {
  MutexLock lock(mu_);
  return scopes_[std::this_thread::get_id()];
}

const Graph::Scopes* Graph::FindScopes() const {
  MutexLock lock(mu_);
  const auto it = scopes_.find(std::this_thread::get_id());
  return it == scopes_.end() ? nullptr : &it->second;
}

void Graph::DropEmptyScopes() {
  MutexLock lock(mu_);
  const auto it = scopes_.find(std::this_thread::get_id());
  if (it == scopes_.end()) return;
  const Scopes& open = it->second;
  if (open.devices.empty() && open.names.empty() && open.controls.empty() && open.colocate.empty() &&
      open.creators.empty() && open.sites.empty()) {
    scopes_.erase(it);
  }
}

CallSite Graph::ScopedSite() const {
  const Scopes* open = FindScopes();
  return open == nullptr || open->sites.empty() ? CallSite() : open->sites.back();
}

std::string Graph::ApplyDeviceScopes(const Scopes& scopes, const NodeDraft& draft) {
  std::string device = draft.device;
  for (auto frame = scopes.devices.rbegin(); frame != scopes.devices.rend() && !frame->clear; ++frame) {
    device = frame->function ? frame->function({draft.op, draft.name, device, draft.dtype, draft.shape})
                             : MergeDevices(frame->device, device);
  }
  return device;
}

DeviceScope::DeviceScope(Graph& graph, const std::string& device) : graph_(graph) {
  graph_.scopes().devices.push_back({DeviceName::Parse(device).ToString(), nullptr, false});
}
DeviceScope::DeviceScope(Graph& graph, DeviceFunction function) : graph_(graph) {
  graph_.scopes().devices.push_back({"", std::move(function), false});
}
DeviceScope::DeviceScope(Graph& graph, std::nullptr_t) : graph_(graph) {
  graph_.scopes().devices.push_back({"", nullptr, true});
}
DeviceScope::~DeviceScope() {
  graph_.scopes().devices.pop_back();
  graph_.DropEmptyScopes();
}

CallSiteScope::CallSiteScope(Graph& graph, CallSite site) : graph_(site.IsOfProgram() ? &graph : nullptr) {
  if (graph_ != nullptr) graph_->scopes().sites.push_back(site);
}
CallSiteScope::~CallSiteScope() {
  if (graph_ == nullptr) return;
  graph_->scopes().sites.pop_back();
  graph_->DropEmptyScopes();
}

NameScope::NameScope(Graph& graph, const std::string& name) : graph_(graph) {
  if (!IsScopeName(name)) {
    throw InvalidArgumentError(StrCat("[graph] '", name, "' is not a name scope; expected letters, digits and _.-/>"));
  }
  if (!name.empty()) prefix_ = name.back() == '/' ? name.substr(0, name.size() - 1) : graph_.UniqueName(name);
  graph_.scopes().names.push_back(prefix_);
}
NameScope::~NameScope() {
  graph_.scopes().names.pop_back();
  graph_.DropEmptyScopes();
}

ControlDependencies::ControlDependencies(Graph& graph, std::vector<Node*> nodes) : graph_(graph) {
  for (const Node* node : nodes) {
    if (node == nullptr || &node->graph() != &graph) {
      throw InvalidArgumentError(StrCat("[graph] expected control dependencies on nodes of the same graph, got ",
                                        node == nullptr ? "none" : node->Describe() + " of another graph"));
    }
  }
  graph_.scopes().controls.push_back(std::move(nodes));
}
ControlDependencies::ControlDependencies(Graph& graph, std::nullptr_t) : graph_(graph) {
  graph_.scopes().controls.push_back({nullptr});
}
ControlDependencies::~ControlDependencies() {
  graph_.scopes().controls.pop_back();
  graph_.DropEmptyScopes();
}

ColocateWith::ColocateWith(Graph& graph, const Node& node) : graph_(graph) {
  if (&node.graph() != &graph) {
    throw InvalidArgumentError(StrCat("[graph] expected to colocate with a node of the same graph, got ",
                                      node.Describe(), " of another graph"));
  }
  graph_.scopes().colocate.push_back(&node);
}
ColocateWith::ColocateWith(Graph& graph, std::nullptr_t) : graph_(graph) {
  graph_.scopes().colocate.push_back(nullptr);
}
ColocateWith::~ColocateWith() {
  graph_.scopes().colocate.pop_back();
  graph_.DropEmptyScopes();
}

VariableCreatorScope::VariableCreatorScope(Graph& graph, VariableCreator creator) : graph_(graph) {
  graph_.scopes().creators.push_back(std::move(creator));
}
VariableCreatorScope::~VariableCreatorScope() {
  graph_.scopes().creators.pop_back();
  graph_.DropEmptyScopes();
}

}  // namespace cohort
