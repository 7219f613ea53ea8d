// Chooses the order of images in memory. Images whose number of channels is a multiple of 16 may be in blocks of 16
// channels inside a plan: [batch, channels / 16, rows, columns, 16]. Convolutions, pools and normalizations are fastest
// in this order. Shapes stay [batch, rows, columns, channels].
#pragma once

#include <set>
#include <string>
#include <utility>

#include "cohort/graph/graph.h"

namespace cohort {

// Returns the values of a partition that should be in blocks: results of convolutions with a suitable number of
// channels, and results of nodes after them that accept blocks (pools, normalizations, elementwise ops). Does not
// change the graph.
std::set<std::pair<const Node*, int>> BlockedValues(const Graph& graph);

// Gives the nodes that read or make blocked images the attributes `_blocked_in` and `_blocked_out`, from which their
// kernels know the order. At a convolution and its gradients, these say the order of the convolution's input and
// output. At other nodes, `_blocked_in` says the order of all their images. Adds one _ToBlocked or _FromBlocked to a
// value if readers need the other order; a node that reads only the shape does not need one. Does nothing if
// `device_type` has no kernels for these two.
void ChooseOrders(Graph& graph, const std::string& device_type);

}  // namespace cohort
