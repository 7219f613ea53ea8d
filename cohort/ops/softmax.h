// Softmax and the losses made of it; float32, float64 or bfloat16, over the last axis.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// e^x_i / sum_j e^x_j, computed after subtracting the largest x. logits [..., classes].
COHORT_EXPORT Output Softmax(Output logits, const std::string& name = "Softmax");
COHORT_EXPORT Output LogSoftmax(Output logits, const std::string& name = "LogSoftmax");
// -sum_i labels_i log softmax(logits)_i: shape logits.shape[:-1]. labels: as logits, rows that sum to 1.
COHORT_EXPORT Output SoftmaxCrossEntropyWithLogits(Output logits, Output labels,
                                                   const std::string& name = "SoftmaxCrossEntropyWithLogits");
// -log softmax(logits)[label]: shape of labels = logits.shape[:-1], int32 or int64. A label outside [0, classes) fails
// the step with InvalidArgumentError that names it.
COHORT_EXPORT Output SparseSoftmaxCrossEntropyWithLogits(
    Output logits, Output labels, const std::string& name = "SparseSoftmaxCrossEntropyWithLogits");
// Element by element -(z log s + (1 - z) log(1 - s)), s = sigmoid(logits), without overflow; labels as logits.
COHORT_EXPORT Output SigmoidCrossEntropyWithLogits(Output logits, Output labels,
                                                   const std::string& name = "logistic_loss");

}  // namespace cohort::ops
