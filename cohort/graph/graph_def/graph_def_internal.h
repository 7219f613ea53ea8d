// GraphDef messages in memory, for code that puts graphs into other messages. Internal to graph/.
#pragma once

#include <string>

#include "cohort/graph/graph.h"
#include "cohort/graph/graph_def.h"
#include "cohort/graph/graph_def/foreign_ops.h"
#include "cohort/proto/graph.pb.h"
#include "cohort/proto/tensor_proto.h"

namespace cohort {

class Function;

// Adds only the nodes of `def`, without its library. Otherwise it does what ImportGraphDef does. `budget` is for the
// tensors of all nodes.
void ImportNodes(Graph& graph, const proto::GraphDef& def, const std::string& prefix, TensorBudget& budget,
                 const ForeignOps& foreign);
// Writes the whole node to `out`. Inputs are written as in a GraphDef.
void ToProto(const Node& node, const GraphDefOptions& options, proto::NodeDef* out);
// Returns how many inputs or outputs of a node belong to `arg`, given the node's attributes. Throws
// InvalidArgumentError if the attributes do not say it.
size_t CountOfArg(const OpDef& op, const ArgDef& arg, const AttrMap& attrs);

void ToProto(const Function& function, proto::FunctionDef* out);
// Returns the function of a message. Its body shares the library of `outer`. If `outer` is null, the body has a library
// of its own.
std::shared_ptr<const Function> FromProto(const proto::FunctionDef& def, Graph* outer, TensorBudget& budget,
                                          const ForeignOps& foreign);
// Returns the number that the output `text` of a function's body, "node:output_arg:index", has among all outputs of the
// node `def`, whose op is `op`. Throws InvalidArgumentError if the node has no such output.
size_t FlatOutputIndex(const OpDef& op, const proto::NodeDef& def, const std::string& text, TensorBudget& budget);

}  // namespace cohort
