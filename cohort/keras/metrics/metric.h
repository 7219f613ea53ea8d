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

  virtual std::vector<MetricState> States() const = 0;
  // Returns the values that one batch adds to the states, with the states' shapes and dtypes. y_true, y_pred and
  // sample_weight are as in Loss::Sums: the ranks of y_true and y_pred may differ by a last dimension of 1, and if
  // sample_weight is not valid, weights are 1.
  virtual std::vector<Output> Increments(const Output& y_true, const Output& y_pred,
                                         const Output& sample_weight) const = 0;
  // Returns the metric (a float scalar) from the values of the states. The result is 0 if nothing has been counted.
  virtual Output Result(const std::vector<Output>& states) const = 0;

  // Adds Increments to the variables `states` (one for each of States(), in order). When the returned node has run, all
  // states have changed.
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
