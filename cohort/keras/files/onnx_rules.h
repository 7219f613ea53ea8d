// The rules that translate each op to ONNX, in one table for each kind of op. Internal to keras/.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cohort/keras/files/onnx_nodes.h"

namespace cohort::keras {

// Adds ONNX nodes for `node` and names its outputs (SetPlain, SetNchw). The inputs of `node` have been added. Throws
// UnimplementedError that shows the node if its attributes have no form in ONNX.
using OnnxRule = void (*)(OnnxTranslation& t, const Node& node);
using OnnxRules = std::map<std::string, OnnxRule>;

// Elementwise ops: arithmetic, activations, comparisons, choices, conversions. Also softmax.
const OnnxRules& OnnxElementwiseRules();
// Shapes, slices, joins, matrix products, sums over axes, weights.
const OnnxRules& OnnxArrayRules();
// Convolutions, pools, batch normalization.
const OnnxRules& OnnxImageRules();

}  // namespace cohort::keras
