// Activation functions, which work on each element alone. The input is float32, float64 or bfloat16, of any shape. The
// result has the same dtype and shape. All throw InvalidArgumentError for another dtype, when the node is added.
#pragma once

#include <string>

#include "cohort/graph/graph.h"

namespace cohort::ops {

Output Relu(Output features, const std::string& name = "Relu");                                // max(x, 0)
Output Relu6(Output features, const std::string& name = "Relu6");                              // min(max(x, 0), 6)
Output LeakyRelu(Output features, float alpha = 0.2f, const std::string& name = "LeakyRelu");  // x > 0 ? x : alpha x
Output Elu(Output features, const std::string& name = "Elu");                                  // x > 0 ? x : e^x - 1
// Returns scale x for x > 0, else scale alpha (e^x - 1), with alpha = 1.67326324... and scale = 1.05070098...
// (Klambauer et al. 2017).
Output Selu(Output features, const std::string& name = "Selu");
Output Sigmoid(Output x, const std::string& name = "Sigmoid");  // 1 / (1 + e^-x)
Output Tanh(Output x, const std::string& name = "Tanh");
Output Softplus(Output features, const std::string& name = "Softplus");  // log(1 + e^x)
Output Swish(Output features, const std::string& name = "Swish");        // x sigmoid(x)

}  // namespace cohort::ops
