// Fusion of what follows a matrix product or a convolution into it.
#pragma once

#include <memory>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort {

// Puts one _FusedMatMul in the place of each MatMul -> BiasAdd [-> activation] (or AddV2 of a vector that is known to
// be as long as the product's rows) whose values in between nobody else reads, under the name of the last of them;
// control inputs of all become its. The same for Conv2D (_FusedConv2D) and DepthwiseConv2dNative
// (_FusedDepthwiseConv2dNative). `graph` itself where there is nothing to fuse or `device_type` has no such kernels.
std::unique_ptr<Graph> FuseBiases(std::unique_ptr<Graph> graph, const std::string& device_type);

}  // namespace cohort
