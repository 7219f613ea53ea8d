// GraphDef messages in memory, for what holds graphs inside of other messages. Internal to graph/.
#pragma once

#include <string>

#include "cohort/graph/graph.h"
#include "cohort/graph/graph_def.h"
#include "cohort/proto/graph.pb.h"

namespace cohort {

class Function;

// The nodes alone, without the library: as ImportGraphDef.
void ImportNodes(Graph& graph, const proto::GraphDef& def, const std::string& prefix);
// Everything of a node; inputs as a GraphDef has them.
void ToProto(const Node& node, const GraphDefOptions& options, proto::NodeDef* out);
// How many of a node's flat inputs or outputs belong to `arg`, by the node's attributes. Throws InvalidArgumentError.
size_t CountOfArg(const OpDef& op, const ArgDef& arg, const AttrMap& attrs);

void ToProto(const Function& function, proto::FunctionDef* out);
// `outer`: the graph whose library the body shares; null: it gets one of its own.
std::shared_ptr<const Function> FromProto(const proto::FunctionDef& def, Graph* outer);

}  // namespace cohort
