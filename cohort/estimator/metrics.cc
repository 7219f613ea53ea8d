// Metrics. Their states are local variables, to which an update adds: sums and counts (Mean and what is made of it), or
// the weights of true and false positives and negatives, at one threshold or at many.
#include "cohort/estimator/metrics.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/estimator/weights.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/math.h"
#include "cohort/ops/select.h"
#include "cohort/ops/slice.h"
#include "cohort/ops/variables.h"

namespace cohort::metrics {
namespace {

ops::Variable State(Graph& graph, const char* name, const Shape& shape = {}) {
  return ops::Variable(graph, shape, initializers::Zeros(),
                       {.name = name, .trainable = false, .local = true, .dtype = DType::kFloat32});
}

struct Pair {
  Output labels, predictions;
};

// Drops a last dimension of 1 that only one of the two has.
Pair Aligned(const char* metric, Output labels, Output predictions) {
  const Shape& a = labels.shape();
  const Shape& b = predictions.shape();
  if (a.has_rank() && b.has_rank()) {
    if (a.rank() == b.rank() + 1 && a.dim(a.rank() - 1) == 1) labels = ops::Squeeze(labels, {-1});
    if (b.rank() == a.rank() + 1 && b.dim(b.rank() - 1) == 1) predictions = ops::Squeeze(predictions, {-1});
  }
  if (labels.shape().IsCompatibleWith(predictions.shape())) return {labels, predictions};
  throw InvalidArgumentError(StrCat("[metrics::", metric, "] expected labels and predictions of one shape; got ",
                                    labels.name(), " ", a, " and ", predictions.name(), " ", b));
}

Pair AlignedFloats(const char* metric, Output labels, Output predictions) {
  const Pair x = Aligned(metric, labels, predictions);
  return {weights::AsFloat(x.labels), weights::AsFloat(x.predictions)};
}

// Returns weights::For. As in tf.compat.v1.metrics, weights with a last dimension of 1 more or less than the values
// lose it or get it.
Output WeightsFor(Output values, const ops::Operand& given) {
  if (given.is_number()) return weights::For(values, given);
  Output weights = given.output();
  const Shape &own = weights.shape(), &of = values.shape();
  if (own.has_rank() && of.has_rank() && own.rank() > 0) {
    if (own.rank() == of.rank() + 1 && own.dim(of.rank()) == 1) {
      weights = ops::Squeeze(weights, {-1});
    } else if (own.rank() + 1 == of.rank()) {
      weights = ops::ExpandDims(weights, -1);
    }
  }
  return weights::For(values, weights);
}

// Returns the weights in the shape of the values.
Output FullWeights(Output values, const ops::Operand& given) {
  const Output ones = ops::OnesLike(values), weights = WeightsFor(values, given);
  return weights.valid() ? ones * weights : ones;
}

// The metric of the current scope.
Metric WeightedMean(Output values, const ops::Operand& given) {
  Graph& graph = values.graph();
  const ops::Variable total = State(graph, "total"), count = State(graph, "count");
  const Output numbers = weights::AsFloat(values);
  Output sum, size;
  if (WeightsFor(numbers, given).valid()) {
    const Output weights = FullWeights(numbers, given);
    sum = ops::Sum(numbers * weights);
    size = ops::Sum(weights);
  } else {
    sum = ops::Sum(numbers);
    size = ops::Cast(ops::Size(numbers), DType::kFloat32);
  }
  Node* update = ops::Group(graph, {total.AssignAdd(sum), count.AssignAdd(size)});
  return {weights::DivideOrZero(total.value(), count.value()), update};
}

// The weights of the outcomes. Predictions are positive above each of the thresholds, or if they are not 0.
struct Confusion {
  Output tp, fn, tn, fp;  // the sums so far: [thresholds], or []
  Node* update = nullptr;
};

Output IsNotZero(const Output& x) { return x.dtype() == DType::kBool ? x : ops::NotEqual(x, ops::ScalarLike(x, 0)); }

Confusion ConfusionOf(const Pair& x, const ops::Operand& given, const std::vector<float>& thresholds) {
  Graph& graph = x.predictions.graph();
  Output predictions = x.predictions, weights = FullWeights(weights::AsFloat(predictions), given);
  Output positive = IsNotZero(x.labels), above;
  Shape shape;
  std::vector<int64_t> axes;  // empty: all
  if (thresholds.empty()) {
    above = IsNotZero(predictions);
  } else {
    shape = Shape{static_cast<int64_t>(thresholds.size())};
    axes = {1};
    above = ops::Greater(ops::Reshape(predictions, {1, -1}), ops::Const(graph, thresholds, Shape{shape.dim(0), 1}));
    positive = ops::Reshape(positive, {1, -1});
    weights = ops::Reshape(weights, {1, -1});
  }
  std::vector<Node*> updates;
  const auto sum = [&](const char* name, Output label, Output prediction) {
    const ops::Variable state = State(graph, name, shape);
    const Output hits = ops::Cast(ops::LogicalAnd(label, prediction), DType::kFloat32) * weights;
    updates.push_back(state.AssignAdd(axes.empty() ? ops::Sum(hits) : ops::Sum(hits, axes)));
    return state.value();
  };
  const Output negative = ops::LogicalNot(positive), below = ops::LogicalNot(above);
  Confusion all;
  all.tp = sum("true_positives", positive, above);
  all.fn = sum("false_negatives", positive, below);
  all.tn = sum("true_negatives", negative, below);
  all.fp = sum("false_positives", negative, above);
  all.update = ops::Group(graph, updates);
  return all;
}

void CheckThresholds(const char* metric, const std::vector<float>& thresholds) {
  if (thresholds.empty()) {
    throw InvalidArgumentError(StrCat("[metrics::", metric, "] expected one threshold at least; got none"));
  }
}

}  // namespace

Metric Mean(Output values, const ops::Operand& weights, const std::string& name) {
  const NameScope scope(values.graph(), name);
  return WeightedMean(values, weights);
}

Metric Accuracy(Output labels, Output predictions, const ops::Operand& weights, const std::string& name) {
  const NameScope scope(labels.graph(), name);
  Pair x = Aligned("Accuracy", labels, predictions);
  if (x.predictions.dtype() != x.labels.dtype()) x.predictions = ops::Cast(x.predictions, x.labels.dtype());
  return WeightedMean(ops::Cast(ops::Equal(x.labels, x.predictions), DType::kFloat32), weights);
}

Metric MeanAbsoluteError(Output labels, Output predictions, const ops::Operand& weights, const std::string& name) {
  const NameScope scope(labels.graph(), name);
  const Pair x = AlignedFloats("MeanAbsoluteError", labels, predictions);
  return WeightedMean(ops::Abs(x.predictions - x.labels), weights);
}

Metric MeanSquaredError(Output labels, Output predictions, const ops::Operand& weights, const std::string& name) {
  const NameScope scope(labels.graph(), name);
  const Pair x = AlignedFloats("MeanSquaredError", labels, predictions);
  return WeightedMean(ops::SquaredDifference(x.predictions, x.labels), weights);
}

Metric RootMeanSquaredError(Output labels, Output predictions, const ops::Operand& weights, const std::string& name) {
  const Metric squared = MeanSquaredError(labels, predictions, weights, name);
  return {ops::Sqrt(squared.value), squared.update};
}

Metric Precision(Output labels, Output predictions, const ops::Operand& weights, const std::string& name) {
  const NameScope scope(labels.graph(), name);
  const Confusion all = ConfusionOf(Aligned("Precision", labels, predictions), weights, {});
  return {weights::DivideOrZero(all.tp, all.tp + all.fp), all.update};
}

Metric Recall(Output labels, Output predictions, const ops::Operand& weights, const std::string& name) {
  const NameScope scope(labels.graph(), name);
  const Confusion all = ConfusionOf(Aligned("Recall", labels, predictions), weights, {});
  return {weights::DivideOrZero(all.tp, all.tp + all.fn), all.update};
}

Metric PrecisionAtThresholds(Output labels, Output predictions, const std::vector<float>& thresholds,
                             const ops::Operand& weights, const std::string& name) {
  CheckThresholds("PrecisionAtThresholds", thresholds);
  const NameScope scope(labels.graph(), name);
  const Confusion all = ConfusionOf(AlignedFloats("PrecisionAtThresholds", labels, predictions), weights, thresholds);
  return {all.tp / (1e-7f + all.tp + all.fp), all.update};
}

Metric RecallAtThresholds(Output labels, Output predictions, const std::vector<float>& thresholds,
                          const ops::Operand& weights, const std::string& name) {
  CheckThresholds("RecallAtThresholds", thresholds);
  const NameScope scope(labels.graph(), name);
  const Confusion all = ConfusionOf(AlignedFloats("RecallAtThresholds", labels, predictions), weights, thresholds);
  return {all.tp / (1e-7f + all.tp + all.fn), all.update};
}

namespace {

std::vector<float> EvenThresholds(int count) {
  if (count < 2) throw InvalidArgumentError(StrCat("[metrics::Auc] expected num_thresholds > 1; got ", count));
  constexpr double kEpsilon = 1e-7;
  std::vector<float> all = {static_cast<float>(-kEpsilon)};
  for (int i = 1; i + 1 < count; ++i) all.push_back(static_cast<float>(static_cast<double>(i) / (count - 1)));
  all.push_back(static_cast<float>(1.0 + kEpsilon));
  return all;
}

// Elements [0, n - 1) and [1, n) of a vector of n numbers.
struct Neighbours {
  Output here, next;
};
Neighbours NeighboursOf(Output values) {
  const int64_t n = values.shape().dim(0);
  return {ops::Slice(values, {0}, {n - 1}), ops::Slice(values, {1}, {n - 1})};
}

// The area under the precision-recall curve, with true positives that are linear between two thresholds.
Output InterpolatedPrecisionRecall(const Confusion& all) {
  const Neighbours t = NeighboursOf(all.tp), p = NeighboursOf(all.tp + all.fp), fn = NeighboursOf(all.fn);
  const Output gained = t.here - t.next;
  const Output slope = weights::DivideOrZero(gained, ops::Maximum(p.here - p.next, 0));
  const Output intercept = t.next - slope * p.next;
  const Output both = ops::LogicalAnd(ops::Greater(p.here, 0), ops::Greater(p.next, 0));
  const Output ratio = ops::SelectV2(both, weights::DivideOrZero(p.here, ops::Maximum(p.next, 0)), 1);
  return ops::Sum(
      weights::DivideOrZero(slope * (gained + intercept * ops::Log(ratio)), ops::Maximum(t.next + fn.next, 0)));
}

Output AreaUnder(const Confusion& all, const AucOptions& options) {
  constexpr float kEpsilon = 1e-6f;  // TensorFlow's, against a division by zero
  const bool is_roc = options.curve == Curve::kRoc;
  if (!is_roc && options.summation_method == SummationMethod::kCarefulInterpolation) {
    return InterpolatedPrecisionRecall(all);
  }
  const Output recall = (all.tp + kEpsilon) / (all.tp + all.fn + kEpsilon);
  const Neighbours x = NeighboursOf(is_roc ? all.fp / (all.fp + all.tn + kEpsilon) : recall);
  const Neighbours y = NeighboursOf(is_roc ? recall : (all.tp + kEpsilon) / (all.tp + all.fp + kEpsilon));
  Output heights;
  switch (options.summation_method) {
    case SummationMethod::kMinoring: heights = ops::Minimum(y.here, y.next); break;
    case SummationMethod::kMajoring: heights = ops::Maximum(y.here, y.next); break;
    default: heights = (y.here + y.next) / 2; break;
  }
  return ops::Sum((x.here - x.next) * heights);
}

}  // namespace

Metric Auc(Output labels, Output predictions, const AucOptions& options) {
  const std::vector<float> thresholds = EvenThresholds(options.num_thresholds);
  Graph& graph = labels.graph();
  const NameScope scope(graph, options.name);
  Pair x = AlignedFloats("Auc", labels, predictions);
  // Written so that the check also fails for NaN.
  const Output in_range =
      ops::All(ops::LogicalAnd(ops::GreaterEqual(x.predictions, 0), ops::LessEqual(x.predictions, 1)));
  Node* check =
      ops::Assert(in_range, {ops::Const(graph, "[metrics::Auc] expected predictions in [0, 1]; got"), x.predictions});
  {
    const ControlDependencies after(graph, {check});
    x.predictions = ops::Identity(x.predictions);
  }
  const Confusion all = ConfusionOf(x, options.weights, thresholds);
  return {AreaUnder(all, options), all.update};
}

}  // namespace cohort::metrics
