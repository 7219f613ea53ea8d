// The graph of a training, as its chief writes it into the folder.
#pragma once

#include <string>

#include "cohort/graph/graph.h"

namespace cohort::train {

// Returns graph.pbtxt: a GraphDef as text, which TensorFlow can import. Nodes of ops that TensorFlow lacks, and nodes
// that need their values, are left out.
std::string TextForTensorFlow(const Graph& graph);
// Returns the serialized GraphDef for event files. TensorBoard shows every op, so only the private ones, such as those
// of Saver, are left out.
std::string BytesForTensorBoard(const Graph& graph);

}  // namespace cohort::train
