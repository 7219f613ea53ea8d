// Moves activations and their gradients into neighbouring kernels, which read or write the elements anyway.
#pragma once

#include <memory>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort::cuda {

// Makes two changes:
// - The gradient of an activation, such as SeluGrad, is applied by the kernel that writes its operand, if this is the
//   gradient of a depthwise convolution by its input, or of an average pool, and nothing else reads it: they become one
//   _FusedDepthwiseConv2dNativeBackpropInput or _FusedAvgPoolGrad. Otherwise it is applied by the kernel that reads its
//   result, if this is a _MaxPoolGradAtPlaces and nothing else reads it, and no elementwise node computes its operand:
//   they become one _FusedMaxPoolGradAtPlaces.
// - An activation is applied by the kernels that read its result, if all readers are depthwise convolutions, their
//   gradients by the filter, pools, or the new nodes of the first change. Such a reader gets the attribute
//   `_input_activation` or, if it is a new node, `activation`, and reads the activation's operand. A single node of the
//   activation is then left out, unless an elementwise node computes its operand, with which it is one kernel anyway. A
//   pointwise _FusedConv2D becomes one without activation, unless its product ends in the activation (Relu).
// Bits stay the same, except that a product may add its bias before it rounds. Returns `graph` itself if there is
// nothing to move. Comes after the passes that fuse biases and image gradients.
std::unique_ptr<Graph> MoveActivations(std::unique_ptr<Graph> graph, const std::string& device_type);

// The attribute of a reader: the op of the activation that it applies to the elements of its first input.
inline constexpr char kInputActivation[] = "_input_activation";

}  // namespace cohort::cuda
