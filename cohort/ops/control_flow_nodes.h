// Functions that add nodes which call existing functions. Internal to the op modules.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/graph/function.h"

namespace cohort::ops {

std::vector<DType> DTypesOf(const std::vector<Output>& values);
std::vector<Shape> ShapesOf(const std::vector<Output>& values);

// Add a node. If one of the functions is stateful, they add the stateful op. Requires: the functions are in the graph's
// library.
Node* AddCall(Graph& graph, const std::vector<Output>& inputs, const Function& function, const std::string& name);
Node* AddIf(Graph& graph, Output cond, const std::vector<Output>& inputs, const Function& then_branch,
            const Function& else_branch, const std::vector<Shape>& shapes, const std::string& name);
Node* AddWhile(Graph& graph, const std::vector<Output>& inputs, const Function& cond, const Function& body,
               const std::vector<Shape>& shapes, int64_t parallel_iterations, const std::string& name);
// Returns the function that an attribute of `node` names. Throws NotFoundError if the library does not have it.
std::shared_ptr<const Function> FunctionOf(const Node& node, const char* attr);
// As Graph::DefineFunction. If `name` is taken, the function gets a similar name.
std::shared_ptr<const Function> DefineUnique(Graph& graph, const std::string& name,
                                             const std::vector<FunctionArg>& args, const FunctionBody& body);

}  // namespace cohort::ops
