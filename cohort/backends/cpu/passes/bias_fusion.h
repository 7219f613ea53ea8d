// Fuses bias and activation into the matrix product or convolution before them.
#pragma once

#include <memory>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort {

// Replaces each MatMul -> BiasAdd [-> activation] by one _FusedMatMul, if no other node reads the values in between. An
// AddV2 counts as a BiasAdd if its vector is known to be as long as the product's rows. The new node has the name of
// the last of the replaced nodes and the control inputs of all of them. Does the same for Conv2D (_FusedConv2D) and
// DepthwiseConv2dNative (_FusedDepthwiseConv2dNative). Returns `graph` itself if there is nothing to fuse or if
// `device_type` has no such kernels.
std::unique_ptr<Graph> FuseBiases(std::unique_ptr<Graph> graph, const std::string& device_type);

}  // namespace cohort
