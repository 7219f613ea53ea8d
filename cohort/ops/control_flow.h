// Calls of functions, branches and loops. What a branch or a loop does is the body of a function (graph/function.h),
// given as a C++ function that adds its nodes to `body`. There it may use its arguments, and values of the graph around
// it: these become further inputs (of a loop: ones that stay the same), constants are copied. Nested ones work.
//
// A body runs on the device of the node that calls it. Nodes with an effect run with each call whether a result depends
// on them or not; their order within the body is that of ControlDependencies(body, ..), nothing else. Variables reach a
// body by their handles (VarHandleOp), which may be inputs or just be used.
//
// Where gradients are taken (graph/gradients.h), the node is changed to hand out what its gradient needs, under the
// same name and with the same outputs: build gradients before a session runs it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/graph/function.h"

namespace cohort::ops {

// The results of `function`, which is put into the graph's library where it is not there.
std::vector<Output> Call(Graph& graph, const std::shared_ptr<const Function>& function,
                         const std::vector<Output>& inputs, const NodeName& name = "PartitionedCall");
// Makes a function of `body`, whose arguments are like `inputs`, and calls it.
std::vector<Output> Call(Graph& graph, const std::vector<Output>& inputs, const FunctionBody& body,
                         const NodeName& name = "PartitionedCall");

// The results of `then_body` or of `else_body`, whichever `cond` chooses: a scalar by its value, anything else by
// whether it has elements. Only that one runs. Both get `inputs` as arguments and have results of the same dtypes.
// Throws InvalidArgumentError where they do not.
std::vector<Output> If(Output cond, const std::vector<Output>& inputs, const FunctionBody& then_body,
                       const FunctionBody& else_body, const NodeName& name = "cond");

struct WhileOptions {
  int64_t maximum_iterations = -1;      // no limit
  std::vector<Shape> shape_invariants;  // of each loop variable what stays the same; none: the shape of its input
  int64_t parallel_iterations = 10;     // kept for TensorFlow; iterations run one after another here
  std::string name = "while";
};
// The last values of the loop variables, which begin as `inputs`: while `cond` (bool scalar of them) holds, `body`
// makes the next ones. Throws InvalidArgumentError where a result of the body has another dtype than its variable, or a
// shape that does not stay within the variable's.
std::vector<Output> While(const std::vector<Output>& inputs, const FunctionBody& cond, const FunctionBody& body,
                          const WhileOptions& options = {}, CallSite site = CallSite::Here());

}  // namespace cohort::ops
