// GraphDefs as messages, for loaders that change a graph before they add its nodes (checkpoint/saved_model). Everyone
// else uses graph/graph_def.h.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cohort/graph/graph.h"
#include "cohort/graph/graph_def/foreign_ops.h"

namespace cohort {

namespace proto {
class GraphDef;
}  // namespace proto

// What stands for the values of nodes that called functions, after KeepNeededPart.
class InlinedValues {
 public:
  explicit InlinedValues(std::map<std::string, std::string> values) : values_(std::move(values)) {}
  // Returns the value that stands for `value`, a text such as "node:1". If `value` is none of a call, returns `value`
  // itself.
  std::string Of(const std::string& value) const;

 private:
  std::map<std::string, std::string> values_;
};

// Makes variables with handles of those that are references (reference_variables_internal.h). Then removes from `def`
// the nodes on which none of `ends` depends, and the functions that none of the other nodes needs. `ends` are names of
// nodes ("node") or of values ("node:1"). Then puts the nodes of functions into the place of the nodes that call them
// (PartitionedCall and StatefulPartitionedCall), in the graph and in the functions that branches and loops name. A node
// that stood for a call becomes a NoOp, which runs after all effects of the function. The new nodes are called
// "call/node"; they have no device, and none of the attributes whose names begin with '_'. The order of effects stays:
// nodes with an effect run after the control inputs of the call, and readers of a result run after the function's
// effects. Control inputs that order no effect are removed, and so are Identity nodes that only pass a value on, so
// that kernels can be fused across the borders of functions. The functions get shapes and dtypes of handles from where
// TensorFlow 2 writes them. A Case node becomes nested branches (case_op.h). Throws InvalidArgumentError, which names
// the function, if
// - functions call each other, or name each other in branches and loops, in a circle or more than 100 deep;
// - the library has two functions of a name, or the graph or a function two nodes of a name;
// - a call has another number of inputs than the function has arguments;
// - a name in a function or in an input of a call means nothing, or values of calls depend on each other in a circle;
// - a call gives attributes to a function;
// - the copies of functions would take more than 64 MiB and sixteen times the size of the GraphDef.
// Throws NotFoundError if a needed function is not in the library, and if a needed op is neither one of Cohort's nor
// one of `foreign`. The error names op, node and function of up to ten of these ops.
InlinedValues KeepNeededPart(proto::GraphDef& def, const std::vector<std::string>& ends, const ForeignOps& foreign);

// Does what ImportGraphDef does (graph/graph_def.h) with a message. Makes nodes of `foreign` ops, too. If a function of
// the library cannot be made, throws the error instead of leaving the function out.
void ImportGraphDefMessage(Graph& graph, const proto::GraphDef& def, const ForeignOps& foreign);

}  // namespace cohort
