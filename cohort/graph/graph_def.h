// GraphDef: a graph as bytes or as text. The bytes are TensorFlow's graph.proto, so TensorBoard, Netron and TensorFlow
// can read them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort {

// Says what SerializeGraphDef and GraphDefText write.
struct COHORT_EXPORT GraphDefOptions {
  // Adds the attribute `_output_shapes` to each node. TensorBoard uses it to label edges.
  bool output_shapes = false;
  // If it returns false for the op of a node, the node is left out, and so are nodes that need its value, and functions
  // of the library with such a node. Then a reader that lacks some ops can import the rest. Null: all is written.
  std::function<bool(std::string_view op)> has_op = nullptr;
};

// This version is written as VersionDef.producer. ParseGraphDef reads graphs whose min_consumer is at most this
// version.
inline constexpr int kGraphDefVersion = 1882;

// Returns the graph as a serialized GraphDef. The nodes have the order in which they were added. All attributes are
// written, defaults too. Colocation is written as `_class` "loc:@name". The functions of the library are included.
// Equal graphs give equal bytes. Throws InvalidArgumentError if the result would be larger than protobuf's limit of 2
// GB.
COHORT_EXPORT std::string SerializeGraphDef(const Graph& graph, const GraphDefOptions& options = {});
// Returns the same GraphDef in protobuf's text form (graph.pbtxt), which has no limit of size.
COHORT_EXPORT std::string GraphDefText(const Graph& graph, const GraphDefOptions& options = {});

// Adds the nodes of a serialized GraphDef to `graph`. If `prefix` is not empty, the names become `prefix`/name. Scopes
// do not apply to the new nodes; they keep the devices that the GraphDef gives. Adds functions of the GraphDef's
// library whose names `graph` lacks. Drops attributes that an op of Cohort does not have if they hold false, 0, "" or
// an empty list, because later versions of TensorFlow add such attributes to ops, or if they only say where a node
// comes from. If Cohort cannot make one of these functions, leaves it out and logs a warning. Variables of TensorFlow 1
// that are references (VariableV2) become variables with handles, and the ops that use them those that take handles.
// Checks all names before it adds the first node. If it then rejects a node, the nodes added before stay. Error
// messages name the node and the op. Throws
// - InvalidArgumentError if the bytes are not a GraphDef or need a later version, if two nodes have the same name, if
//   an input does not exist, if there is a cycle, if the inputs or attributes of a node do not fit its op, or if an
//   attribute has a value that Cohort cannot hold (AttrValue);
// - NotFoundError for an unknown op;
// - AlreadyExistsError if `graph` has a node of the name already;
// - FailedPreconditionError if `graph` is finalized.
COHORT_EXPORT void ImportGraphDef(Graph& graph, std::string_view bytes, const std::string& prefix = "");
// Returns a new graph with the nodes of a serialized GraphDef. Throws as ImportGraphDef does.
COHORT_EXPORT std::unique_ptr<Graph> ParseGraphDef(std::string_view bytes);

}  // namespace cohort
