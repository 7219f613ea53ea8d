// Activation functions, element by element; float32, float64 or bfloat16, output shaped as the input.
#pragma once

#include <string>

#include "cohort/graph/graph.h"

namespace cohort::ops {

Output Relu(Output features, const NodeName& name = "Relu");                                // max(x, 0)
Output Relu6(Output features, const NodeName& name = "Relu6");                              // min(max(x, 0), 6)
Output LeakyRelu(Output features, float alpha = 0.2f, const NodeName& name = "LeakyRelu");  // x > 0 ? x : alpha x
Output Elu(Output features, const NodeName& name = "Elu");                                  // x > 0 ? x : e^x - 1
// scale x for x > 0, else scale alpha (e^x - 1); alpha = 1.67326324..., scale = 1.05070098... (Klambauer et al. 2017).
Output Selu(Output features, const NodeName& name = "Selu");
Output Sigmoid(Output x, const NodeName& name = "Sigmoid");  // 1 / (1 + e^-x)
Output Tanh(Output x, const NodeName& name = "Tanh");
Output Softplus(Output features, const NodeName& name = "Softplus");  // log(1 + e^x)
Output Swish(Output features, const NodeName& name = "Swish");        // x sigmoid(x)

}  // namespace cohort::ops
