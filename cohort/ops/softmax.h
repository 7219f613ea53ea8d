// Softmax and the losses made of it; float32, float64 or bfloat16, over the last axis.
#pragma once

#include <string>

#include "cohort/graph/graph.h"

namespace cohort::ops {

// e^x_i / sum_j e^x_j, computed after subtracting the largest x. logits [..., classes].
Output Softmax(Output logits, const NodeName& name = "Softmax");
Output LogSoftmax(Output logits, const NodeName& name = "LogSoftmax");
// -sum_i labels_i log softmax(logits)_i: shape logits.shape[:-1]. labels: as logits, rows that sum to 1.
Output SoftmaxCrossEntropyWithLogits(Output logits, Output labels,
                                     const NodeName& name = "SoftmaxCrossEntropyWithLogits");
// -log softmax(logits)[label]: shape of labels = logits.shape[:-1], int32 or int64. A label outside [0, classes) fails
// the step with InvalidArgumentError that names it.
Output SparseSoftmaxCrossEntropyWithLogits(Output logits, Output labels,
                                           const NodeName& name = "SparseSoftmaxCrossEntropyWithLogits");
// Element by element -(z log s + (1 - z) log(1 - s)), s = sigmoid(logits), without overflow; labels as logits.
Output SigmoidCrossEntropyWithLogits(Output logits, Output labels, const NodeName& name = "logistic_loss");

}  // namespace cohort::ops
