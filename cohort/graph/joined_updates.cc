#include "cohort/graph/joined_updates.h"

#include "cohort/core/str_cat.h"

namespace cohort {

std::optional<JoinedUpdates> FindJoinedUpdates(const Node& node) {
  if (node.op_name() != kJoinedUpdates) return std::nullopt;
  return JoinedUpdates{&OpRegistry::Global().Get(node.attr<std::string>("op")),
                       node.attr<std::vector<std::string>>("names")};
}

Node* JoinUpdates(Graph& graph, const std::vector<Node*>& updates) {
  const Node& first = *updates.front();
  NodeBuilder builder = graph.Op(kJoinedUpdates);
  builder.Name(StrCat(first.name(), "/joined")).Device(first.device()).IgnoreScopes();
  std::vector<Output> inputs;
  std::vector<std::string> names;
  for (const Node* update : updates) {
    inputs.insert(inputs.end(), update->inputs().begin(), update->inputs().end());
    names.push_back(update->name());
    for (Node* control : update->control_inputs()) builder.Control(control);
  }
  return builder.Inputs(inputs).Attrs(first.attrs()).Attr("op", first.op_name()).Attr("names", names).Finish();
}

}  // namespace cohort
