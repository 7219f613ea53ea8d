#include "cohort/estimator/losses.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/estimator/weights.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"
#include "cohort/ops/select.h"
#include "cohort/ops/softmax.h"

namespace cohort::losses {
namespace {

void CheckShapes(const char* loss, Output labels, Output predictions) {
  if (labels.shape().IsCompatibleWith(predictions.shape())) return;
  throw InvalidArgumentError(StrCat("[losses::", loss, "] expected labels and predictions of one shape; got ",
                                    labels.name(), " ", labels.shape(), " and ", predictions.name(), " ",
                                    predictions.shape()));
}

// The options that all losses have.
template <typename Options>
LossOptions Common(const Options& options) {
  return {.weights = options.weights,
          .scope = options.scope,
          .loss_collection = options.loss_collection,
          .reduction = options.reduction};
}

std::string ScopeOr(const std::string& scope, const char* otherwise) { return scope.empty() ? otherwise : scope; }

Output Divided(Output sum, Output count) { return weights::DivideOrZero(sum, count); }

// Reduces the losses, whose weights are all 1.
Output ReduceUnweighted(Output losses, Reduction reduction) {
  if (reduction == Reduction::kNone) return losses;
  const Output sum = ops::Sum(losses);
  if (reduction == Reduction::kSum) return sum;
  return Divided(sum, ops::Cast(ops::Size(losses), DType::kFloat32));
}

Output Reduce(Output losses, Output weights, Reduction reduction) {
  const Output weighted = losses * weights;
  if (reduction == Reduction::kNone) return weighted;
  const Output sum = ops::Sum(weighted), ones = ops::OnesLike(losses);
  switch (reduction) {
    case Reduction::kMean: return Divided(sum, ops::Sum(ones * weights));
    case Reduction::kSumOverBatchSize: return Divided(sum, ops::Sum(ones));
    case Reduction::kSumByNonzeroWeights:
      return Divided(sum, ops::Sum(ones * ops::Cast(ops::NotEqual(weights, 0), DType::kFloat32)));
    default: return sum;
  }
}

// Reduces in the scope that is open.
Output Finish(Output losses, const LossOptions& options) {
  const DType dtype = losses.dtype();
  losses = weights::AsFloat(losses);
  const Output weights = weights::For(losses, options.weights);
  Output result =
      weights.valid() ? Reduce(losses, weights, options.reduction) : ReduceUnweighted(losses, options.reduction);
  if (IsFloating(dtype) && dtype != DType::kFloat32) result = ops::Cast(result, dtype);
  if (!options.loss_collection.empty()) AddLoss(result, options.loss_collection);
  return result;
}

struct Pair {
  Output labels, predictions;
};
Pair AsFloats(const char* loss, Output labels, Output predictions) {
  CheckShapes(loss, labels, predictions);
  return {weights::AsFloat(labels), weights::AsFloat(predictions)};
}

}  // namespace

Output ComputeWeightedLoss(Output losses, const LossOptions& options) {
  const NameScope scope(losses.graph(), ScopeOr(options.scope, "weighted_loss"));
  return Finish(losses, options);
}

Output AbsoluteDifference(Output labels, Output predictions, const LossOptions& options) {
  const NameScope scope(predictions.graph(), ScopeOr(options.scope, "absolute_difference"));
  const Pair x = AsFloats("AbsoluteDifference", labels, predictions);
  return Finish(ops::Abs(x.predictions - x.labels), options);
}

Output MeanSquaredError(Output labels, Output predictions, const LossOptions& options) {
  const NameScope scope(predictions.graph(), ScopeOr(options.scope, "mean_squared_error"));
  const Pair x = AsFloats("MeanSquaredError", labels, predictions);
  return Finish(ops::SquaredDifference(x.predictions, x.labels), options);
}

Output HingeLoss(Output labels, Output logits, const LossOptions& options) {
  const NameScope scope(logits.graph(), ScopeOr(options.scope, "hinge_loss"));
  const Pair x = AsFloats("HingeLoss", labels, logits);
  return Finish(ops::Relu(1.0f - (2.0f * x.labels - 1.0f) * x.predictions), options);
}

Output HuberLoss(Output labels, Output predictions, const HuberLossOptions& options) {
  const NameScope scope(predictions.graph(), ScopeOr(options.scope, "huber_loss"));
  const Pair x = AsFloats("HuberLoss", labels, predictions);
  const auto delta = static_cast<float>(options.delta);
  const Output error = ops::Abs(x.predictions - x.labels);
  const Output quadratic = ops::Minimum(error, delta);
  const Output linear = error - quadratic;
  return Finish(0.5f * quadratic * quadratic + delta * linear, Common(options));
}

Output LogLoss(Output labels, Output predictions, const LogLossOptions& options) {
  const NameScope scope(predictions.graph(), ScopeOr(options.scope, "log_loss"));
  const Pair x = AsFloats("LogLoss", labels, predictions);
  const auto epsilon = static_cast<float>(options.epsilon);
  return Finish(
      -(x.labels * ops::Log(x.predictions + epsilon)) - (1.0f - x.labels) * ops::Log(1.0f - x.predictions + epsilon),
      Common(options));
}

Output SigmoidCrossEntropy(Output multi_class_labels, Output logits, const CrossEntropyOptions& options) {
  const NameScope scope(logits.graph(), ScopeOr(options.scope, "sigmoid_cross_entropy_loss"));
  CheckShapes("SigmoidCrossEntropy", multi_class_labels, logits);
  Output labels = ops::Cast(multi_class_labels, logits.dtype());
  const auto smoothing = static_cast<float>(options.label_smoothing);
  if (smoothing > 0) labels = labels * (1.0f - smoothing) + 0.5f * smoothing;
  return Finish(ops::SigmoidCrossEntropyWithLogits({.labels = labels, .logits = logits}), Common(options));
}

Output SoftmaxCrossEntropy(Output onehot_labels, Output logits, const CrossEntropyOptions& options) {
  const NameScope scope(logits.graph(), ScopeOr(options.scope, "softmax_cross_entropy_loss"));
  CheckShapes("SoftmaxCrossEntropy", onehot_labels, logits);
  Output labels = ops::Cast(onehot_labels, logits.dtype());
  const auto smoothing = static_cast<float>(options.label_smoothing);
  if (smoothing > 0) {
    const Shape& shape = logits.shape();
    if (!shape.has_rank() || shape.rank() < 1 || shape.dim(shape.rank() - 1) < 0) {
      throw InvalidArgumentError(
          StrCat("[losses::SoftmaxCrossEntropy] label_smoothing needs a known number of classes; got ", logits.name(),
                 " ", shape));
    }
    labels = labels * (1.0f - smoothing) + smoothing / static_cast<float>(shape.dim(shape.rank() - 1));
  }
  labels = ops::StopGradient(labels);
  return Finish(ops::SoftmaxCrossEntropyWithLogits({.labels = labels, .logits = logits}), Common(options));
}

Output SparseSoftmaxCrossEntropy(Output labels, Output logits, const LossOptions& options) {
  const NameScope scope(logits.graph(), ScopeOr(options.scope, "sparse_softmax_cross_entropy_loss"));
  const int rank = logits.shape().has_rank() ? logits.shape().rank() : -1;
  const auto squeezed = [rank](Output value) {
    const bool column = rank > 1 && value.shape().has_rank() && value.shape().rank() == rank;
    return column ? ops::Squeeze(value, {-1}) : value;
  };
  LossOptions squeezed_weights = options;
  if (!options.weights.is_number()) squeezed_weights.weights = squeezed(options.weights.output());
  return Finish(ops::SparseSoftmaxCrossEntropyWithLogits({.labels = squeezed(labels), .logits = logits}),
                squeezed_weights);
}

void AddLoss(Output loss, const std::string& loss_collection) { loss.graph().AddToCollection(loss_collection, loss); }

std::vector<Output> GetLosses(const Graph& graph, const std::string& loss_collection) {
  return graph.collection(loss_collection);
}

std::vector<Output> GetRegularizationLosses(const Graph& graph) { return graph.collection(kRegularizationLosses); }

Output GetRegularizationLoss(Graph& graph, const NodeName& name) {
  const std::vector<Output> losses = GetRegularizationLosses(graph);
  return losses.empty() ? ops::Const(graph, Tensor::Scalar(0.0f), name) : ops::AddN(losses, name);
}

Output GetTotalLoss(Graph& graph, bool add_regularization_losses, const NodeName& name) {
  std::vector<Output> losses = GetLosses(graph);
  if (add_regularization_losses) {
    for (const Output& loss : GetRegularizationLosses(graph)) losses.push_back(loss);
  }
  if (losses.empty()) throw InvalidArgumentError("[losses::GetTotalLoss] expected a loss in the graph; there is none");
  return ops::AddN(losses, name);
}

}  // namespace cohort::losses
