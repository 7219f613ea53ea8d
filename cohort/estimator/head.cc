#include "cohort/estimator/head.h"

#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/estimator/weights.h"
#include "cohort/ops/activation.h"
#include "cohort/ops/array.h"
#include "cohort/ops/comparison.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/control.h"
#include "cohort/ops/gather.h"
#include "cohort/ops/join.h"
#include "cohort/ops/lookup.h"
#include "cohort/ops/math.h"
#include "cohort/ops/slice.h"
#include "cohort/ops/softmax.h"
#include "cohort/ops/summary.h"

namespace cohort::estimator {
namespace {

// Returns numbers or strings, a feature or the labels, as [batch, n] for logits [batch, ...]. Another number of
// elements fails the step.
Output Matrix(const Output& value, int64_t n, const Output& logits, const char* what) {
  const Shape& shape = value.shape();
  const bool is_column = n == 1 && shape.rank() == 1;
  if (shape.has_rank() && !is_column && !shape.IsCompatibleWith(Shape{Shape::kUnknownDim, n})) {
    throw InvalidArgumentError(StrCat("[estimator] expected ", what, " of shape ", n == 1 ? "[batch] or " : "",
                                      "[batch, ", n, "]; got ", shape));
  }
  return weights::Matrix(value, n, logits);
}

// As Matrix, float32.
Output FloatMatrix(const Output& value, int64_t n, const Output& logits, const char* what) {
  if (value.dtype() == DType::kString) {
    throw InvalidArgumentError(StrCat("[estimator] expected numbers as ", what, "; got strings"));
  }
  return weights::AsFloat(Matrix(value, n, logits, what));
}

// Returns the labels behind a check that all of them are in a range, which `fits` says.
Output Checked(const Output& labels, const Output& fits, const std::string& range) {
  Graph& graph = labels.graph();
  const Output text = ops::Const(graph, StrCat("expected labels in ", range, "; got"));
  const ControlDependencies after(graph, {ops::Assert(ops::All(fits), {text, labels}, 20)});
  return ops::Identity(labels);
}

// Returns the row [1, n] once for each row of `logits`.
Output ForEachExample(const Output& row, const Output& logits) {
  const Output batch = ops::Slice(ops::ShapeOf(logits), {0}, {1});
  return ops::Tile(row, ops::Concat({batch, ops::Const(logits.graph(), std::vector<int32_t>{1})}, 0));
}

class Classifier : public Head {
 public:
  explicit Classifier(const ClassifierOptions& options)
      : Head(options.weight_column, options.loss_reduction),
        classes_(options.n_classes),
        vocabulary_(options.label_vocabulary) {
    if (classes_ < 2) {
      throw InvalidArgumentError(StrCat("[estimator] expected n_classes of at least 2; got ", classes_));
    }
    if (vocabulary_.empty()) return;
    if (std::ssize(vocabulary_) != classes_) {
      throw InvalidArgumentError(StrCat("[estimator] expected a label_vocabulary of n_classes = ", classes_,
                                        " entries; got ", vocabulary_.size()));
    }
    try {
      ops::CheckVocabulary(Tensor::Vector(vocabulary_));
    } catch (const InvalidArgumentError& error) {
      throw InvalidArgumentError(StrCat(error.what(), " (label_vocabulary)"));
    }
  }

 protected:
  int64_t classes() const { return classes_; }

  // Returns the labels, [batch, 1]: strings of the vocabulary as numbers of classes, and numbers as they are.
  Output Numbers(const Output& given, const Output& logits) const {
    const Output labels = Matrix(given, 1, logits, "labels");
    if (vocabulary_.empty()) {
      if (labels.dtype() != DType::kString) return labels;
      throw InvalidArgumentError("[estimator] expected numbers as labels; got strings: set label_vocabulary");
    }
    if (labels.dtype() == DType::kString) {
      return ops::VocabularyLookup(labels, Tensor::Vector(vocabulary_), std::nullopt);
    }
    throw InvalidArgumentError(
        StrCat("[estimator] expected strings as labels, because there is a label_vocabulary; got ", labels.dtype()));
  }

  // Returns the predictions that follow from the probabilities of all classes, [batch, classes].
  Outputs OfProbabilities(const Output& logits, const Output& probabilities, const Output& class_ids) const {
    Graph& graph = logits.graph();
    std::vector<int32_t> numbers;
    std::vector<std::string> names;
    for (int64_t i = 0; i < classes_; ++i) {
      numbers.push_back(static_cast<int32_t>(i));
      names.push_back(vocabulary_.empty() ? StrCat(i) : vocabulary_[static_cast<size_t>(i)]);
    }
    const Output all_names = ops::Const(graph, Tensor::Vector(names));
    return {{"logits", logits},
            {"probabilities", probabilities},
            {"class_ids", class_ids},
            {"classes", ops::Gather(all_names, class_ids)},
            {"all_class_ids", ForEachExample(ops::ExpandDims(ops::Const(graph, numbers), 0), logits)},
            {"all_classes", ForEachExample(ops::ExpandDims(all_names, 0), logits)}};
  }

  std::map<std::string, Outputs> Exports(const Outputs& predictions) const override {
    const Outputs classification = {{"classes", predictions.at("all_classes")},
                                    {"scores", predictions.at("probabilities")}};
    return {{"serving_default", classification}, {"classification", classification}, {"predict", predictions}};
  }

  void AddMetrics(const Evaluation& evaluation, const Outputs& predictions, const ops::Operand& weights,
                  Metrics& metrics) const override {
    metrics["accuracy"] = metrics::Accuracy(evaluation.labels, predictions.at("class_ids"), weights);
  }

 private:
  const int64_t classes_;
  const std::vector<std::string> vocabulary_;
};

class BinaryClassifier final : public Classifier {
 public:
  using Classifier::Classifier;
  int64_t logits_dimension() const override { return 1; }

 private:
  Outputs Predictions(const Output& logits) const override {
    const Output of_both = ops::Concat({ops::ZerosLike(logits), logits}, 1);
    const Output class_ids = ops::ExpandDims(ops::ArgMax(of_both, 1), 1);
    Outputs predictions = OfProbabilities(logits, ops::Softmax(of_both), class_ids);
    predictions["logistic"] = ops::Sigmoid(logits);
    return predictions;
  }
  std::map<std::string, Outputs> Exports(const Outputs& predictions) const override {
    std::map<std::string, Outputs> exports = Classifier::Exports(predictions);
    exports["regression"] = {{"outputs", predictions.at("logistic")}};
    return exports;
  }
  Evaluation Evaluate(const Output& labels, const Output& logits) const override {
    const Output numbers = weights::AsFloat(Numbers(labels, logits));
    const Output fits = ops::LogicalAnd(ops::GreaterEqual(numbers, 0), ops::LessEqual(numbers, 1));
    const Output checked = Checked(numbers, fits, "[0, 1]");
    return {checked, ops::SigmoidCrossEntropyWithLogits({.labels = checked, .logits = logits})};
  }
  void AddMetrics(const Evaluation& evaluation, const Outputs& predictions, const ops::Operand& weights,
                  Metrics& metrics) const override {
    Classifier::AddMetrics(evaluation, predictions, weights, metrics);
    const Output& labels = evaluation.labels;
    const Output class_ids = ops::Cast(predictions.at("class_ids"), DType::kFloat32);
    const Output& logistic = predictions.at("logistic");
    metrics["precision"] = metrics::Precision(labels, class_ids, weights);
    metrics["recall"] = metrics::Recall(labels, class_ids, weights);
    metrics["prediction/mean"] = metrics::Mean(logistic, weights, "prediction/mean");
    const metrics::Metric mean = metrics::Mean(labels, weights, "label/mean");
    metrics["label/mean"] = mean;
    // Of always predicting the more frequent class.
    metrics["accuracy_baseline"] = {ops::Maximum(mean.value, 1 - mean.value), mean.update};
    metrics["auc"] = metrics::Auc(labels, logistic, {.weights = weights, .name = "auc"});
    metrics["auc_precision_recall"] = metrics::Auc(
        labels, logistic, {.weights = weights, .curve = metrics::Curve::kPr, .name = "auc_precision_recall"});
  }
};

class MultiClassifier final : public Classifier {
 public:
  using Classifier::Classifier;
  int64_t logits_dimension() const override { return classes(); }

 private:
  Outputs Predictions(const Output& logits) const override {
    return OfProbabilities(logits, ops::Softmax(logits), ops::ExpandDims(ops::ArgMax(logits, 1), 1));
  }
  Evaluation Evaluate(const Output& labels, const Output& logits) const override {
    const Output numbers = Numbers(labels, logits);
    if (!IsInteger(numbers.dtype())) {
      throw InvalidArgumentError(
          StrCat("[estimator] expected integers as labels of ", classes(), " classes; got ", numbers.dtype()));
    }
    const Output integers = ops::Cast(numbers, DType::kInt64);
    const Output fits = ops::LogicalAnd(ops::GreaterEqual(integers, 0), ops::Less(integers, classes()));
    const Output ids = Checked(integers, fits, StrCat("[0, ", classes(), ")"));
    const Output losses =
        ops::SparseSoftmaxCrossEntropyWithLogits({.labels = ops::Reshape(ids, {-1}), .logits = logits});
    return {ids, ops::ExpandDims(losses, 1)};
  }
};

class Regressor final : public Head {
 public:
  explicit Regressor(const RegressorOptions& options)
      : Head(options.weight_column, options.loss_reduction), dimension_(options.label_dimension) {
    if (dimension_ >= 1) return;
    throw InvalidArgumentError(StrCat("[estimator] expected a label_dimension of at least 1; got ", dimension_));
  }
  int64_t logits_dimension() const override { return dimension_; }

 private:
  Outputs Predictions(const Output& logits) const override { return {{"predictions", logits}}; }
  std::map<std::string, Outputs> Exports(const Outputs& predictions) const override {
    const Outputs regression = {{"outputs", predictions.at("predictions")}};
    return {{"serving_default", regression}, {"regression", regression}, {"predict", predictions}};
  }
  Evaluation Evaluate(const Output& given, const Output& logits) const override {
    const Output labels = FloatMatrix(given, dimension_, logits, "labels");
    return {labels, ops::SquaredDifference(labels, logits)};
  }
  void AddMetrics(const Evaluation& evaluation, const Outputs& predictions, const ops::Operand& weights,
                  Metrics& metrics) const override {
    metrics["prediction/mean"] = metrics::Mean(predictions.at("predictions"), weights, "prediction/mean");
    metrics["label/mean"] = metrics::Mean(evaluation.labels, weights, "label/mean");
  }

  const int64_t dimension_;
};

}  // namespace

Head::Head(std::string weight_column, losses::Reduction reduction)
    : weight_column_(std::move(weight_column)), reduction_(reduction) {
  if (reduction != losses::Reduction::kNone) return;
  throw InvalidArgumentError("[estimator] expected a loss_reduction that makes one loss; got kNone");
}

EstimatorSpec Head::Spec(const ModelFnArgs& args, const Output& logits,
                         const std::function<Node*(const Output& loss)>& minimize) const {
  EstimatorSpec spec{.mode = args.mode};
  Graph& graph = args.graph;
  const NameScope scope(graph, "head");
  spec.predictions = Predictions(logits);
  if (args.mode == ModeKeys::kPredict) {
    spec.export_outputs = Exports(spec.predictions);
    return spec;
  }
  if (args.labels.empty()) {
    throw InvalidArgumentError("[estimator] expected labels, as the last component of the dataset; got features alone");
  }
  const Evaluation evaluation = Evaluate(args.labels[0], logits);
  ops::Operand weights = 1.0f;
  if (!weight_column_.empty()) {
    const Output given = args.feature(weight_column_);
    const bool of_elements = given.shape().rank() == 2 && given.shape().dim(1) == logits_dimension();
    weights = FloatMatrix(given, of_elements ? evaluation.losses.shape().dim(1) : 1, logits, "the weight_column");
  }
  spec.loss = losses::ComputeWeightedLoss(evaluation.losses, {.weights = weights, .reduction = reduction_});
  if (args.mode == ModeKeys::kEval) {
    spec.eval_metric_ops["average_loss"] = metrics::Mean(evaluation.losses, weights, "average_loss");
    AddMetrics(evaluation, spec.predictions, weights, spec.eval_metric_ops);
    return spec;
  }
  const Output mean = losses::ComputeWeightedLoss(
      evaluation.losses, {.weights = weights, .loss_collection = "", .reduction = losses::Reduction::kMean});
  {
    const NameScope without(graph, "");  // tags have the names of scopes
    ops::ScalarSummary("loss", spec.loss);
    ops::ScalarSummary("average_loss", mean);
  }
  spec.train_op = minimize(spec.loss);
  return spec;
}

std::unique_ptr<Head> MakeHead(const ClassifierOptions& options) {
  if (options.n_classes == 2) return std::make_unique<BinaryClassifier>(options);
  return std::make_unique<MultiClassifier>(options);
}
std::unique_ptr<Head> MakeHead(const RegressorOptions& options) { return std::make_unique<Regressor>(options); }

}  // namespace cohort::estimator
