// Calls of functions, branches and loops. The body of a branch or a loop is a function (graph/function.h). The caller
// gives it as a C++ function that adds its nodes to `body`. It may use its arguments and values of the surrounding
// graph. These values become further inputs, which stay the same in a loop. Constants are copied. Bodies may be nested.
//
// A body runs on the device of the node that calls it. Nodes with an effect run in each call, even if no result depends
// on them. Only ControlDependencies(body, ..) fixes their order within the body. Variables reach a body by their
// handles (VarHandleOp), which may be inputs or values of the surrounding graph.
//
// If gradients are taken (graph/gradients.h), the node is changed: it gets further outputs that its gradient needs. Its
// name and its other outputs stay the same. So build gradients before a session runs the node.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/function.h"

namespace cohort::ops {

// Calls `function` and returns its results. Adds it to the graph's library if it is not there.
COHORT_EXPORT std::vector<Output> Call(Graph& graph, const std::shared_ptr<const Function>& function,
                                       const std::vector<Output>& inputs, const std::string& name = "PartitionedCall");
// Makes a function of `body` and calls it. Its arguments have the dtypes and shapes of `inputs`.
COHORT_EXPORT std::vector<Output> Call(Graph& graph, const std::vector<Output>& inputs, const FunctionBody& body,
                                       const std::string& name = "PartitionedCall");

// Returns the results of `then_body` or of `else_body`, as `cond` chooses. A scalar `cond` chooses by its value, and
// any other tensor by whether it has elements. Only the chosen body runs. Both bodies get `inputs` as arguments. Throws
// InvalidArgumentError if their results differ in number or dtype.
COHORT_EXPORT std::vector<Output> If(Output cond, const std::vector<Output>& inputs, const FunctionBody& then_body,
                                     const FunctionBody& else_body, const std::string& name = "cond");

struct COHORT_EXPORT WhileOptions {
  int64_t maximum_iterations = -1;      // -1: there is no limit
  std::vector<Shape> shape_invariants;  // for each loop variable the part of its shape that stays the same; empty: the
                                        // shapes of the inputs
  int64_t parallel_iterations = 10;     // kept for TensorFlow; iterations run one after another here
  std::string name = "while";
};
// Returns the last values of the loop variables. They begin as `inputs`. While `cond` (a bool scalar of them) is true,
// `body` makes the next values. Throws InvalidArgumentError if a result of the body has another dtype than its
// variable, or a shape that the variable's does not allow.
COHORT_EXPORT std::vector<Output> While(const std::vector<Output>& inputs, const FunctionBody& cond,
                                        const FunctionBody& body, const WhileOptions& options = {});

}  // namespace cohort::ops
