// Losses as functions of a graph, with the names, the formulas and the defaults of tf.compat.v1.losses. Each returns a
// scalar, unless the reduction is kNone, and adds it to a collection, so that GetTotalLoss finds it.
//
// `weights` is a number, a scalar, or a value of the rank of the losses whose dimensions are 1 or those of the losses:
// [batch, 1] weighs examples of losses [batch, n], and [batch] those of losses [batch]. A weight of 0 leaves a loss
// out.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::losses {

// What is made of the weighted losses.
enum class Reduction {
  kNone,                 // nothing: the result has the shape of the losses
  kSum,                  // their sum
  kMean,                 // their sum, divided by the sum of the weights
  kSumOverBatchSize,     // their sum, divided by the number of losses
  kSumByNonzeroWeights,  // their sum, divided by the number of losses whose weight is not 0
};

// The names of the collections of losses, and of losses that weights add (tf.GraphKeys).
inline constexpr const char* kLosses = "losses";
inline constexpr const char* kRegularizationLosses = "regularization_losses";

struct COHORT_EXPORT LossOptions {
  ops::Operand weights = 1.0f;
  std::string scope;                      // of the nodes; "": the name of the function in TensorFlow
  std::string loss_collection = kLosses;  // "": the loss is added to none
  Reduction reduction = Reduction::kSumByNonzeroWeights;
};

// Reduces `losses`, which have one element for each example, or more. The other functions end in this one. The result
// is float32, or the dtype of the losses if that is floating. A division by 0 gives 0. Throws InvalidArgumentError for
// weights of another shape.
COHORT_EXPORT Output ComputeWeightedLoss(Output losses, const LossOptions& options = {});

// In the next five functions, labels and predictions (or logits) have one shape, and are computed in float32, whatever
// their dtypes. They throw InvalidArgumentError for different shapes.
COHORT_EXPORT Output AbsoluteDifference(Output labels, Output predictions, const LossOptions& options = {});
COHORT_EXPORT Output MeanSquaredError(Output labels, Output predictions, const LossOptions& options = {});
// max(0, 1 - y * logits), where y is -1 for the label 0 and 1 for the label 1.
COHORT_EXPORT Output HingeLoss(Output labels, Output logits, const LossOptions& options = {});

struct COHORT_EXPORT HuberLossOptions {
  ops::Operand weights = 1.0f;
  double delta = 1.0;
  std::string scope;
  std::string loss_collection = kLosses;
  Reduction reduction = Reduction::kSumByNonzeroWeights;
};
// e^2 / 2 for |e| <= delta, and delta * |e| - delta^2 / 2 beyond, with e = predictions - labels.
COHORT_EXPORT Output HuberLoss(Output labels, Output predictions, const HuberLossOptions& options = {});

struct COHORT_EXPORT LogLossOptions {
  ops::Operand weights = 1.0f;
  double epsilon = 1e-7;
  std::string scope;
  std::string loss_collection = kLosses;
  Reduction reduction = Reduction::kSumByNonzeroWeights;
};
// -labels * log(predictions + epsilon) - (1 - labels) * log(1 - predictions + epsilon)
COHORT_EXPORT Output LogLoss(Output labels, Output predictions, const LogLossOptions& options = {});

struct COHORT_EXPORT CrossEntropyOptions {
  ops::Operand weights = 1.0f;
  double label_smoothing = 0.0;
  std::string scope;
  std::string loss_collection = kLosses;
  Reduction reduction = Reduction::kSumByNonzeroWeights;
};
// The cross entropy of the sigmoid of each logit. Label smoothing moves labels towards 1/2:
// labels * (1 - label_smoothing) + label_smoothing / 2. Both have one shape.
COHORT_EXPORT Output SigmoidCrossEntropy(Output multi_class_labels, Output logits,
                                         const CrossEntropyOptions& options = {});
// The cross entropy of the softmax over the last axis: one loss for each example. Both are [batch, classes]. Label
// smoothing moves labels towards 1 / classes. No gradient flows to the labels.
COHORT_EXPORT Output SoftmaxCrossEntropy(Output onehot_labels, Output logits, const CrossEntropyOptions& options = {});
// The same for labels that are numbers of classes: int32 or int64 [batch], or [batch, 1], for logits [batch, classes].
// Weights may be [batch, 1], too.
COHORT_EXPORT Output SparseSoftmaxCrossEntropy(Output labels, Output logits, const LossOptions& options = {});

// Adds a loss to a collection.
COHORT_EXPORT void AddLoss(Output loss, const std::string& loss_collection = kLosses);
// Return the losses of the graph, in the order in which they were added. Regularization losses are those that layers
// with a kernel_regularizer add; their sum is 0 if there is none.
COHORT_EXPORT std::vector<Output> GetLosses(const Graph& graph, const std::string& loss_collection = kLosses);
COHORT_EXPORT std::vector<Output> GetRegularizationLosses(const Graph& graph);
COHORT_EXPORT Output GetRegularizationLoss(Graph& graph, const NodeName& name = "total_regularization_loss");
// Returns the sum of all losses, with the regularization losses if `add_regularization_losses` is true. Throws
// InvalidArgumentError if there is none.
COHORT_EXPORT Output GetTotalLoss(Graph& graph, bool add_regularization_losses = true,
                                  const NodeName& name = "total_loss");

}  // namespace cohort::losses
