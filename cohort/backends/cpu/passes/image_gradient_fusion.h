// Fusion of the gradients of convolutions and pools with what computes nearly the same.
#pragma once

#include <memory>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort {

// Conv2DBackpropFilter and the BiasAddGrad of the same gradient become one _FusedConv2DBackpropFilter; a MaxPool and
// its MaxPoolGrad, which would pool again, become _MaxPoolWithPlaces and _MaxPoolGradAtPlaces, which does not read the
// pool's input. The gradient of an activation in front of the pool (SeluGrad of MaxPoolGrad) changes places with it: it
// is needed where the pool has taken elements only, and there the activation's value is the pool's, so that the larger
// one can be forgotten after the pool. `graph` itself where there is nothing to fuse or `device_type` has no such
// kernels.
std::unique_ptr<Graph> FuseImageGradients(std::unique_ptr<Graph> graph, const std::string& device_type);

}  // namespace cohort
