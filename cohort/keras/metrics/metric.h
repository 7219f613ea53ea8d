// Metrics with Keras 3's names, arguments and defaults. A Metric is an immutable description that threads may share.
// Its functions add nodes to the graph of their arguments. Its state is a list of tensors that change only by addition.
// So the states of replicas can be summed, and the result of the sums is the result for all replicas. The model that
// trains makes one variable for each state.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/keras/files/config.h"
#include "cohort/ops/variables.h"

namespace cohort::keras {

// One state variable. It is zero at first and after a reset.
struct COHORT_EXPORT MetricState {
  std::string name;  // "total", "count"
  Shape shape;       // fully defined
  DType dtype = DType::kFloat64;
};

enum class MetricDirection { kNone, kUp, kDown };  // kUp: larger values are better

// The base of metrics. Immutable and thread-safe. Programs and models share ownership (MetricPtr).
class COHORT_EXPORT Metric {
 public:
  virtual ~Metric() = default;
  Metric(const Metric&) = delete;
  Metric& operator=(const Metric&) = delete;

  // Returns the metric's name in the logs. If the model has several outputs, the logs put the output's name before it.
  const std::string& name() const { return name_; }
  virtual MetricDirection direction() const { return MetricDirection::kNone; }

  // Returns the states for targets and predictions of these shapes. A metric whose states do not depend on the shapes
  // overrides States, which StatesFor returns; any other overrides StatesFor.
  virtual std::vector<MetricState> StatesFor(const Shape& y_true, const Shape& y_pred) const { return States(); }
  virtual std::vector<MetricState> States() const { return {}; }
  // Returns the values that one batch adds to the states, with the states' shapes and dtypes. y_true, y_pred and
  // sample_weight are as in Loss::Sums: the ranks of y_true and y_pred may differ by a last dimension of 1, and if
  // sample_weight is not valid, weights are 1.
  virtual std::vector<Output> Increments(const Output& y_true, const Output& y_pred,
                                         const Output& sample_weight) const = 0;
  // Returns true if `sample_weight` may be the mask of y_pred, as float32, times the weights of the examples. As in
  // Keras, metrics that are means leave masked steps out, and the others count them.
  virtual bool uses_masks() const { return false; }
  // Returns the metric (a float scalar) from the values of the states. The result is 0 if nothing has been counted.
  virtual Output Result(const std::vector<Output>& states) const = 0;

  // Adds Increments to the variables `states` (one for each of StatesFor(), in order). When the returned node has run,
  // all states have changed.
  Node* Update(const std::vector<ops::Variable>& states, const Output& y_true, const Output& y_pred,
               const Output& sample_weight = {}) const;

  // Returns the metric in the form of Keras's files; serialization.h does the reverse. Throws UnimplementedError for a
  // metric of the program's own.
  virtual ConfigValue Serialized() const;

 protected:
  explicit Metric(std::string name) : name_(std::move(name)) {}

 private:
  const std::string name_;
};

using MetricPtr = std::shared_ptr<const Metric>;

// Returns a metric that is a weighted mean: sum(values * weights) / sum(weights). Most metrics are of this kind. The
// values are the results of `per_example`, one or more for each example: [batch] or [batch, d1, ...]. `per_example`
// gets y_true and y_pred with equal ranks (see Loss::Sums).
COHORT_EXPORT MetricPtr MeanOf(std::string name,
                               std::function<Output(const Output& y_true, const Output& y_pred)> per_example,
                               MetricDirection direction = MetricDirection::kNone);
// The weighted mean of the values in y_pred. y_true is not used and need not be valid.
COHORT_EXPORT MetricPtr Mean(const std::string& name = "mean");

// The fraction of elements with y_true == y_pred.
COHORT_EXPORT MetricPtr Accuracy(const std::string& name = "accuracy");
// The fraction of elements with y_true == (y_pred > threshold). It is computed over the last axis for each example, and
// then averaged over the examples.
COHORT_EXPORT MetricPtr BinaryAccuracy(const std::string& name = "binary_accuracy", double threshold = 0.5);
// The fraction of examples with argmax(y_true) == argmax(y_pred), for one-hot y_true. Of equal values, argmax takes the
// first.
COHORT_EXPORT MetricPtr CategoricalAccuracy(const std::string& name = "categorical_accuracy");
// The fraction of examples with y_true == argmax(y_pred), for integer y_true [batch] or [batch, 1].
COHORT_EXPORT MetricPtr SparseCategoricalAccuracy(const std::string& name = "sparse_categorical_accuracy");
// The fraction of examples whose label is among the k largest predictions. A prediction that is equal to the k-th
// largest is among them.
COHORT_EXPORT MetricPtr TopKCategoricalAccuracy(int k = 5, const std::string& name = "top_k_categorical_accuracy");
COHORT_EXPORT MetricPtr SparseTopKCategoricalAccuracy(int k = 5,
                                                      const std::string& name = "sparse_top_k_categorical_accuracy");

// The curve under which AUC measures the area.
enum class Curve { kRoc, kPr };
// The ways in which AUC sums the area between two thresholds.
enum class SummationMethod { kInterpolation, kMinoring, kMajoring };
struct COHORT_EXPORT AucOptions {
  // The number of thresholds, more than 1. The first is -1e-7, the last is 1 + 1e-7, and threshold i between them is
  // i / (num_thresholds - 1).
  int num_thresholds = 200;
  Curve curve = Curve::kRoc;
  SummationMethod summation_method = SummationMethod::kInterpolation;
  std::string name = "auc";
  std::vector<double> thresholds;  // in [0, 1], in any order; if given, num_thresholds is not used
  bool from_logits = false;        // true: a sigmoid is applied to y_pred first
};
// The area under the curve of a binary classifier, from counts of true and false positives and negatives at thresholds.
// y_pred must be in [0, 1]; a value outside fails the step with InvalidArgumentError. Each element of y_pred counts as
// an example.
COHORT_EXPORT MetricPtr AUC(const AucOptions& options = {});

struct COHORT_EXPORT ConfusionOptions {
  // In [0, 1]. A prediction above it counts as positive. Unset: 0.5. Only one number is possible. For logits, use 0.
  std::optional<double> thresholds;
  // If set, only this class counts: the element class_id of the last axis of y_true and y_pred, which must have at
  // least the dimensions [batch, classes]. Not negative.
  std::optional<int64_t> class_id;
  std::string name = "";  // "": "precision" or "recall"
};
// The fraction of positive predictions that are right: true positives / (true positives + false positives). y_true has
// the shape of y_pred; any value but 0 is a positive label. Each element of y_pred counts as an example, with the
// weight of the example. Throws InvalidArgumentError if an option is out of range, and in Increments if the shapes do
// not fit.
COHORT_EXPORT MetricPtr Precision(const ConfusionOptions& options = {});
// The fraction of positive labels that are found: true positives / (true positives + false negatives). The rest is as
// for Precision.
COHORT_EXPORT MetricPtr Recall(const ConfusionOptions& options = {});

// The options of the metrics that count predictions at one threshold.
struct COHORT_EXPORT ThresholdOptions {
  std::optional<double> thresholds;  // as in ConfusionOptions
  std::string name = "";             // "": "true_positives" and so on
};
// The sum of the weights of the predictions that are above the threshold and have a positive label (TruePositives) or
// not (FalsePositives), and of those that are not above it and have no positive label (TrueNegatives) or have one
// (FalseNegatives). The rest is as for Precision.
COHORT_EXPORT MetricPtr TruePositives(const ThresholdOptions& options = {});
COHORT_EXPORT MetricPtr FalsePositives(const ThresholdOptions& options = {});
COHORT_EXPORT MetricPtr TrueNegatives(const ThresholdOptions& options = {});
COHORT_EXPORT MetricPtr FalseNegatives(const ThresholdOptions& options = {});

// The options of the metrics that choose a threshold.
struct COHORT_EXPORT OperatingPointOptions {
  // The number of thresholds, at least 1. Threshold i is i / (num_thresholds - 1); if there is one, it is 0.5.
  int num_thresholds = 200;
  std::optional<int64_t> class_id;  // as in ConfusionOptions
  std::string name = "";            // "": "precision_at_recall" and so on
};
// The largest precision among the thresholds at which the recall is at least `recall`, and so on: the largest value of
// the first among the thresholds at which the second is at least the given number, in [0, 1]. The result is 0 if there
// is no such threshold. Sensitivity is another word for recall. Specificity is
// true negatives / (true negatives + false positives). y_pred must be in [0, 1]; a value outside fails the step with
// InvalidArgumentError. The rest is as for Precision.
COHORT_EXPORT MetricPtr PrecisionAtRecall(double recall, const OperatingPointOptions& options = {});
COHORT_EXPORT MetricPtr RecallAtPrecision(double precision, const OperatingPointOptions& options = {});
COHORT_EXPORT MetricPtr SensitivityAtSpecificity(double specificity, const OperatingPointOptions& options = {});
COHORT_EXPORT MetricPtr SpecificityAtSensitivity(double sensitivity, const OperatingPointOptions& options = {});

struct COHORT_EXPORT FBetaScoreOptions {
  // "micro": of the counts of all classes together; "macro": the mean of the scores of the classes; "weighted": their
  // mean with the numbers of labels as weights. One of them is needed. Keras's default None gives one value for each
  // class, and a metric has one value.
  std::string average;
  double beta = 1.0;  // > 0; F1Score has 1
  // In (0, 1]. A prediction above it counts as positive. Unset: the largest predictions of each example count, unless
  // they are 0.
  std::optional<double> threshold;
  std::string name = "";  // "": "fbeta_score" or "f1_score"
};
// (1 + beta^2) precision recall / (beta^2 precision + recall), for y_true of 0 and 1 and y_pred, both
// [batch, classes]. 1e-7 is added to each divisor. Throws InvalidArgumentError if an option is out of range, if
// F1Score gets another beta than 1, and in StatesFor and Increments if the shapes do not fit.
COHORT_EXPORT MetricPtr FBetaScore(const FBetaScoreOptions& options);
COHORT_EXPORT MetricPtr F1Score(const FBetaScoreOptions& options);

struct COHORT_EXPORT IouOptions {
  std::optional<int64_t> ignore_class;  // elements with this label are not counted
  // true: y_true (y_pred) has class numbers; false: the class is the position of the largest value along the last axis.
  bool sparse_y_true = true;
  bool sparse_y_pred = true;
  std::string name = "";  // "": "io_u", "mean_io_u"
};
struct COHORT_EXPORT OneHotIouOptions {
  std::optional<int64_t> ignore_class;  // as in IouOptions, with sparse_y_true = false
  bool sparse_y_pred = false;
  std::string name = "";  // "": "one_hot_io_u", "one_hot_mean_io_u"
};
struct COHORT_EXPORT BinaryIouOptions {
  std::vector<int64_t> target_class_ids = {0, 1};
  double threshold = 0.5;  // a prediction of at least this counts as class 1
  std::string name = "";   // "": "binary_io_u"
};
// The mean over classes of intersection over union, true positives / (true positives + false positives + false
// negatives). Classes that are neither in the labels nor in the predictions do not count. Elements whose label or
// prediction is not in [0, num_classes) are left out. y_true and y_pred have any equal number of elements; a
// sample_weight has one value for each element or for each example. Weights may have fractions. (Keras cuts them off.)
// IoU is of the classes `target_class_ids`, MeanIoU of all classes. OneHotIoU and OneHotMeanIoU take one-hot labels,
// and BinaryIoU takes labels of 0 and 1 and predictions in [0, 1]. Throw InvalidArgumentError for classes that are out
// of range.
COHORT_EXPORT MetricPtr IoU(int num_classes, const std::vector<int64_t>& target_class_ids,
                            const IouOptions& options = {});
COHORT_EXPORT MetricPtr MeanIoU(int num_classes, const IouOptions& options = {});
COHORT_EXPORT MetricPtr OneHotIoU(int num_classes, const std::vector<int64_t>& target_class_ids,
                                  const OneHotIouOptions& options = {});
COHORT_EXPORT MetricPtr OneHotMeanIoU(int num_classes, const OneHotIouOptions& options = {});
COHORT_EXPORT MetricPtr BinaryIoU(const BinaryIouOptions& options = {});

struct COHORT_EXPORT R2ScoreOptions {
  // "uniform_average": the mean of the scores of the outputs; "variance_weighted_average": their mean, weighted by the
  // variances of the targets. Keras's None, one value for each output, is not possible.
  std::string class_aggregation = "uniform_average";
  int num_regressors = 0;  // if it is p > 0, and there are n > p + 1 targets, the result is adjusted, see R2Score
  std::string name = "r2_score";
};
// The coefficient of determination of y_true and y_pred, both [batch, outputs]. The score of an output is
// 1 - sum (t - p)^2 / sum (t - mean of t)^2, or 0 if all t are equal. The adjusted score is
// 1 - (1 - score) (n - 1) / (n - p - 1), with the number n of all elements of y_true, as in Keras. Throws
// InvalidArgumentError if an option is out of range, and in StatesFor and Increments if the shapes do not fit.
COHORT_EXPORT MetricPtr R2Score(const R2ScoreOptions& options = {});

// The square root of the weighted mean of (y_true - y_pred)^2 over all elements. y_true has the shape of y_pred.
COHORT_EXPORT MetricPtr RootMeanSquaredError(const std::string& name = "root_mean_squared_error");

// Returns a metric by one of Keras's names: "AUC", "categorical_accuracy", or the name of a loss, such as "mse"; then
// the metric is the mean of that loss. "cosine_similarity" is the loss with the other sign, so that larger values are
// better, as in Keras. The metric has the name `name` in the logs. The shapes decide which metric
// "accuracy" (or "acc") means: BinaryAccuracy if y_pred's last dimension is 1; else SparseCategoricalAccuracy if y_true
// has a lower rank than y_pred or a last dimension of 1; else CategoricalAccuracy. Throws InvalidArgumentError that
// lists all names if there is no such metric.
COHORT_EXPORT MetricPtr MetricByName(const std::string& name, const Shape& y_true, const Shape& y_pred);
COHORT_EXPORT std::vector<std::string> MetricNames();

// An argument of Compile: a metric or its name. A name is resolved when the shapes are known. The constructor throws
// InvalidArgumentError for an unknown name.
class COHORT_EXPORT MetricArgument {
 public:
  MetricArgument(MetricPtr metric) : metric_(std::move(metric)) {}
  MetricArgument(const std::string& name);
  MetricArgument(const char* name) : MetricArgument(std::string(name)) {}
  MetricPtr Resolve(const Shape& y_true, const Shape& y_pred) const;
  // Returns the name, or the metric's Serialized().
  ConfigValue Serialized() const;

 private:
  MetricPtr metric_;
  std::string name_;
};

}  // namespace cohort::keras
