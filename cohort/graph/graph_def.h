// GraphDef: a graph as bytes, wire compatible with TensorFlow's graph.proto (TensorBoard, Netron and
// TensorFlow itself read it), and as text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort {

struct COHORT_EXPORT GraphDefOptions {
  // Adds the attribute `_output_shapes` to every node, with which TensorBoard labels edges.
  bool output_shapes = false;
};

// The version written as VersionDef.producer, and the newest that ParseGraphDef understands as min_consumer.
inline constexpr int kGraphDefVersion = 1882;

// Nodes in the order of adding, all attributes written out (defaults too), colocation as `_class`
// "loc:@name"; the functions of the graph's library. The same graph gives the same bytes. Throws
// InvalidArgumentError for a graph above protobuf's 2 GB.
COHORT_EXPORT std::string SerializeGraphDef(const Graph& graph, const GraphDefOptions& options = {});
// The same in protobuf's text form (graph.pbtxt).
COHORT_EXPORT std::string GraphDefText(const Graph& graph, const GraphDefOptions& options = {});

// Adds the nodes of a serialized GraphDef, named `prefix`/name where a prefix is given, on the devices that
// it asks for; scopes do not apply. All names are checked before the first node is added; a node that is
// refused leaves those added before it. Throws InvalidArgumentError for bytes that are no GraphDef, inputs
// that are not there, a cycle (by the names on it), values that do not fit the op or that Cohort does not
// have; NotFoundError for an unknown op; AlreadyExistsError for a name that the graph has. Messages name node
// and op. Functions of its library whose names the graph has not yet are added; one that Cohort cannot have is left
// out, with a warning.
COHORT_EXPORT void ImportGraphDef(Graph& graph, std::string_view bytes, const std::string& prefix = "");
COHORT_EXPORT std::unique_ptr<Graph> ParseGraphDef(std::string_view bytes);

}  // namespace cohort
