// Softmax, and losses that use it. Logits are float32, float64 or bfloat16, and the last axis has the classes. The
// results have the dtype of the logits. Throw InvalidArgumentError for shapes that do not fit.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// Returns e^x_i / sum_j e^x_j, computed after subtracting the largest x. logits is [..., classes].
COHORT_EXPORT Output Softmax(Output logits, const std::string& name = "Softmax");
COHORT_EXPORT Output LogSoftmax(Output logits, const std::string& name = "LogSoftmax");
// Returns -sum_i labels_i log softmax(logits)_i, with the shape logits.shape[:-1]. labels has the shape and dtype of
// logits, and its rows sum to 1.
COHORT_EXPORT Output SoftmaxCrossEntropyWithLogits(Output logits, Output labels,
                                                   const std::string& name = "SoftmaxCrossEntropyWithLogits");
// Returns -log softmax(logits)[label]. labels has the shape logits.shape[:-1], and is int32 or int64. A label outside
// [0, classes) fails the step with InvalidArgumentError, which names it.
COHORT_EXPORT Output SparseSoftmaxCrossEntropyWithLogits(
    Output logits, Output labels, const std::string& name = "SparseSoftmaxCrossEntropyWithLogits");
// Returns -(z log s + (1 - z) log(1 - s)) element by element, with s = sigmoid(logits), without overflow. labels (z)
// has the shape and dtype of logits.
COHORT_EXPORT Output SigmoidCrossEntropyWithLogits(Output logits, Output labels,
                                                   const std::string& name = "logistic_loss");

}  // namespace cohort::ops
