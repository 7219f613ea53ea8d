// What becomes of each op in an ONNX model: one table of rules for each kind of op. Internal to keras/.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cohort/keras/files/onnx_nodes.h"

namespace cohort::keras {

// Adds ONNX nodes for `node`, whose inputs have been added, and names its outputs (SetPlain, SetNchw). Throws
// UnimplementedError that shows the node if its attributes have no form in ONNX.
using OnnxRule = void (*)(OnnxTranslation& t, const Node& node);
using OnnxRules = std::map<std::string, OnnxRule>;

// Element by element: arithmetic, activations, comparisons, choices, conversions; softmax.
const OnnxRules& OnnxElementwiseRules();
// Shapes, parts, joins, products of matrices, sums over axes, weights.
const OnnxRules& OnnxArrayRules();
// Convolutions, pools, normalization of batches.
const OnnxRules& OnnxImageRules();

}  // namespace cohort::keras
