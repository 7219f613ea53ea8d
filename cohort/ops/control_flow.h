// Calls of functions, branches and loops. The body of a branch or a loop is a function (graph/function.h). The caller
// gives a C++ function (FunctionBody), which gets a new graph and adds the nodes of the body to it. These nodes may use
// the body's arguments and values of the surrounding graph. If they use a constant of the surrounding graph, the body
// gets a copy of the constant. If they use another value of the surrounding graph, this value becomes a further input
// of the body. Such an input has the same value in all iterations of a loop. Bodies may be nested.
//
// A body runs on the device of the node that calls it. Nodes with an effect run in each call, even if no result depends
// on them. Their order within the body is fixed only by control dependencies (ControlDependencies on the graph of the
// body). Variables reach a body by their handles (VarHandleOp), which may be inputs or values of the surrounding graph.
//
// If a program takes gradients through the node of a call, branch or loop (graph/gradients.h), this changes the node:
// it gets further outputs that its gradient needs. The name and the outputs that the node already had stay the same. So
// build gradients before a session runs the node.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/function.h"

namespace cohort::ops {

// Adds a node that calls `function`, and returns its results. Adds the function to the graph's library if it is not
// there.
COHORT_EXPORT std::vector<Output> Call(Graph& graph, const std::shared_ptr<const Function>& function,
                                       const std::vector<Output>& inputs, const NodeName& name = "PartitionedCall");
// Makes a function from `body`, and adds a node that calls it. The function's arguments have the dtypes and shapes of
// `inputs`.
COHORT_EXPORT std::vector<Output> Call(Graph& graph, const std::vector<Output>& inputs, const FunctionBody& body,
                                       const NodeName& name = "PartitionedCall");

// Runs `then_body` if `cond` is true, else `else_body`, and returns the results of this body. A scalar `cond` is true
// if it is not zero. A `cond` of another rank is true if it has at least one element. The body that runs gets `inputs`
// as arguments. Throws InvalidArgumentError if the results of the two bodies differ in number or dtype.
COHORT_EXPORT std::vector<Output> If(Output cond, const std::vector<Output>& inputs, const FunctionBody& then_body,
                                     const FunctionBody& else_body, const NodeName& name = "cond");

struct COHORT_EXPORT WhileOptions {
  int64_t maximum_iterations = -1;  // -1: there is no limit
  // For each loop variable, a shape that the variable fits in every iteration. Dimensions that change from iteration to
  // iteration must be unknown in this shape. Empty: the shapes of the inputs.
  std::vector<Shape> shape_invariants;
  int64_t parallel_iterations = 10;  // written to graph files for TensorFlow; no effect in Cohort
  std::string name = "while";
};
// Returns the last values of the loop variables. The loop variables begin with the values `inputs`. Before each
// iteration `cond` gets their values and returns a bool scalar. If the scalar is true, `body` gets their values and
// returns their next values. If the scalar is false, the loop ends. It also ends after maximum_iterations. Throws
// InvalidArgumentError if there are no inputs, if `cond` does not return one bool scalar, or if the results of `body`
// differ from the loop variables in number or dtype, or have shapes that shape_invariants do not allow.
COHORT_EXPORT std::vector<Output> While(const std::vector<Output>& inputs, const FunctionBody& cond,
                                        const FunctionBody& body, const WhileOptions& options = {},
                                        CallSite site = CallSite::Here());

}  // namespace cohort::ops
