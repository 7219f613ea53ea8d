// Functions that copy nodes into another graph, together with the functions that the nodes call.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cohort/graph/graph.h"

namespace cohort {

// Copies `node` into `graph`. The copy has the same name, device, attributes and colocation, and the given inputs.
Node* CopyNode(Graph& graph, const Node& node, const std::vector<Output>& inputs,
               const std::vector<Node*>& control_inputs);

// Copies `node` into the body of a function. The name is made unique. The copy has no colocation, because all nodes of
// a function run on one device.
Node* CopyIntoBody(Graph& graph, const Node& node, const std::vector<Output>& inputs,
                   const std::vector<Node*>& control_inputs);

// Copies `node` into its own graph. The name is made unique. The copy has the same device and colocation, and the same
// attributes except those in `other_attrs`.
Node* CopyBeside(const Node& node, const std::vector<Output>& inputs, const std::vector<Node*>& control_inputs,
                 const AttrMap& other_attrs = {});

// A value of a graph in a form that can be the key of a map.
using ValueKey = std::pair<const Node*, int>;
inline ValueKey KeyOf(const Output& value) { return {value.node, value.index}; }

// Returns a copy of `graph` without the nodes `left_out`. Requires: no other node reads a value of these nodes.
std::unique_ptr<Graph> CopyWithout(const Graph& graph, const std::set<const Node*>& left_out);

// Returns the names of the functions in the attributes of `node`.
std::vector<std::string> CalledFunctions(const Node& node);
// Copies functions from the library of `from` to the library of `to`: those that nodes of `to` call, and those that
// these functions call. Throws NotFoundError, with the name of the calling node, if `from` lacks a function.
void TakeFunctions(const Graph& from, Graph& to);
// Adds `function`, and the functions that it calls, to the library of `to`. Throws AlreadyExistsError if the library
// has another function of one of these names.
void AddFunctionAndCallees(const std::shared_ptr<const Function>& function, Graph& to);

}  // namespace cohort
