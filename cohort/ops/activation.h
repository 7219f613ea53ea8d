// Activation functions, which work on each element alone. The input is float32, float64 or bfloat16, of any shape. The
// result has the same dtype and shape. All throw InvalidArgumentError for another dtype, when the node is added.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

COHORT_EXPORT Output Relu(Output features, const std::string& name = "Relu");    // max(x, 0)
COHORT_EXPORT Output Relu6(Output features, const std::string& name = "Relu6");  // min(max(x, 0), 6)
COHORT_EXPORT Output LeakyRelu(Output features, float alpha = 0.2f,
                               const std::string& name = "LeakyRelu");       // x > 0 ? x : alpha x
COHORT_EXPORT Output Elu(Output features, const std::string& name = "Elu");  // x > 0 ? x : e^x - 1
// Returns scale x for x > 0, else scale alpha (e^x - 1), with alpha = 1.67326324... and scale = 1.05070098...
// (Klambauer et al. 2017).
COHORT_EXPORT Output Selu(Output features, const std::string& name = "Selu");
COHORT_EXPORT Output Sigmoid(Output x, const std::string& name = "Sigmoid");  // 1 / (1 + e^-x)
COHORT_EXPORT Output Tanh(Output x, const std::string& name = "Tanh");
COHORT_EXPORT Output Softplus(Output features, const std::string& name = "Softplus");  // log(1 + e^x)
COHORT_EXPORT Output Swish(Output features, const std::string& name = "Swish");        // x sigmoid(x)

}  // namespace cohort::ops
