// The order of images in memory: inside a plan, images whose channels are a multiple of 16 may lie in blocks of 16
// channels, [batch, channels / 16, rows, columns, 16], which convolutions, pools and normalizations run fastest on.
// Shapes stay [batch, rows, columns, channels].
#pragma once

#include <set>
#include <string>
#include <utility>

#include "cohort/graph/graph.h"

namespace cohort {

// The values of a partition that should lie in blocks: results of convolutions whose channels fit, and of what follows
// them and does not mind (pools, normalizations, elementwise ops). Changes nothing.
std::set<std::pair<const Node*, int>> BlockedValues(const Graph& graph);

// Gives the nodes that read or make blocked images the attributes by which their kernels know it - `_blocked_in` (of a
// convolution or its gradients: the convolution's input; of others: their images) and `_blocked_out` (a convolution's
// output) - and puts one _ToBlocked or _FromBlocked where a value meets readers of the other order (who looks at
// its shape alone does not mind). Nothing where `device_type` has no kernels for these two.
void ChooseOrders(Graph& graph, const std::string& device_type);

}  // namespace cohort
