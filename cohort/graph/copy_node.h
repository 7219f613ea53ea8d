// Copies of nodes into other graphs, with what they call.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// Copies `node` under its own name into `graph` with the given inputs.
Node* CopyNode(Graph& graph, const Node& node, const std::vector<Output>& inputs,
               const std::vector<Node*>& control_inputs);

// The same under a name made unique, bound to no other node: for bodies of functions, which run on one device.
Node* CopyIntoBody(Graph& graph, const Node& node, const std::vector<Output>& inputs,
                   const std::vector<Node*>& control_inputs);

// A value of a graph as the key of a map.
using ValueKey = std::pair<const Node*, int>;
inline ValueKey KeyOf(const Output& value) { return {value.node, value.index}; }

// Copies `graph` without some nodes, which none of the others may read.
std::unique_ptr<Graph> CopyWithout(const Graph& graph, const std::set<const Node*>& left_out);

// Names of the functions in the attributes of `node`.
std::vector<std::string> CalledFunctions(const Node& node);
// Puts into the library of `to` the functions of `from` that nodes of `to` call, and those that these call. Throws
// NotFoundError that names the node for one that is not there.
void TakeFunctions(const Graph& from, Graph& to);
// Puts `function` into the library of `to`, with those that it calls. Throws AlreadyExistsError where another one has
// the name of one of them.
void AddFunctionAndCallees(const std::shared_ptr<const Function>& function, Graph& to);

}  // namespace cohort
