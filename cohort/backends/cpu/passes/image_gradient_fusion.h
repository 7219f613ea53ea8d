// Fuses gradients of convolutions and pools with nodes that compute almost the same.
#pragma once

#include <memory>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort {

// Makes three changes:
// - A Conv2DBackpropFilter and the BiasAddGrad of the same gradient become one _FusedConv2DBackpropFilter.
// - A MaxPool and its MaxPoolGrad become _MaxPoolWithPlaces and _MaxPoolGradAtPlaces. The latter neither pools again
//   nor reads the pool's input.
// - If an activation is before the pool, its gradient (SeluGrad of MaxPoolGrad) is computed before the pool's gradient
//   instead of after it. Only the elements that the pool has chosen matter, and there the activation's value is the
//   pool's. So the activation's result need not be kept after the pool.
// Returns `graph` itself if there is nothing to fuse or if `device_type` has no such kernels.
std::unique_ptr<Graph> FuseImageGradients(std::unique_ptr<Graph> graph, const std::string& device_type);

}  // namespace cohort
