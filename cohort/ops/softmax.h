// Softmax, and losses that use it. Logits are float32, float64 or bfloat16, and the last axis has the classes. The
// results have the dtype of the logits. Throw InvalidArgumentError for shapes that do not fit.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// Returns e^x_i / sum_j e^x_j, computed after subtracting the largest x. logits is [..., classes].
COHORT_EXPORT Output Softmax(Output logits, const NodeName& name = "Softmax");
COHORT_EXPORT Output LogSoftmax(Output logits, const NodeName& name = "LogSoftmax");

// The inputs of a cross-entropy. They have names, {.labels = y, .logits = z}, because to swap the two is no error that
// a function could find.
struct COHORT_EXPORT CrossEntropyInputs {
  Output labels;
  Output logits;  // float32, float64 or bfloat16
};

// Returns -sum_i labels_i log softmax(logits)_i, with the shape logits.shape[:-1]. labels has the shape and dtype of
// logits, and its rows sum to 1. This function and the two below throw InvalidArgumentError if one of the inputs is
// missing, or if the dtypes and shapes do not fit.
COHORT_EXPORT Output SoftmaxCrossEntropyWithLogits(const CrossEntropyInputs& inputs,
                                                   const NodeName& name = "SoftmaxCrossEntropyWithLogits");
// Returns -log softmax(logits)[label]. labels has the shape logits.shape[:-1], and is int32 or int64. A label outside
// [0, classes) fails the step with InvalidArgumentError, which names it.
COHORT_EXPORT Output SparseSoftmaxCrossEntropyWithLogits(const CrossEntropyInputs& inputs,
                                                         const NodeName& name = "SparseSoftmaxCrossEntropyWithLogits");
// Returns -(z log s + (1 - z) log(1 - s)) element by element, with s = sigmoid(logits), without overflow. labels (z)
// has the shape and dtype of logits.
COHORT_EXPORT Output SigmoidCrossEntropyWithLogits(const CrossEntropyInputs& inputs,
                                                   const NodeName& name = "logistic_loss");

}  // namespace cohort::ops
