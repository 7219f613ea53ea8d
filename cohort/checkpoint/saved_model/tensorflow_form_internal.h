// The form that a graph has for TensorFlow: how nodes of ops that TensorFlow lacks are written in ops that it has.
#pragma once

#include <map>
#include <string>

#include "cohort/proto/graph.pb.h"

namespace cohort::saved_model {

// Replaces each node LayerNorm and VocabularyLookup of `graph`, and each FusedBatchNormV3 that is not for training, by
// small ops which compute the same. A vocabulary is sorted by the hashes of its strings, or by its numbers, and
// searched. (TensorFlow has FusedBatchNormV3. But its optimizer of graphs joins the op with a convolution before it and
// an activation behind it, and has no kernel for some activations, such as Tanh.) The result has the name of the node.
// The others are below that name. Function bodies stay as they are. Returns, for each output after the first one, the
// name of the node that computes it now, by the old name of the tensor. Throws InvalidArgumentError if a node has
// another number of inputs than its op, and UnimplementedError if two strings of a vocabulary have the same hash.
std::map<std::string, std::string> WriteOwnOpsAsTensorFlows(proto::GraphDef& graph);

}  // namespace cohort::saved_model
