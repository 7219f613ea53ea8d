// Metrics with Keras 3's names, arguments and defaults. A Metric is an immutable description, shared between threads;
// its members add nodes. Its state is a list of tensors that grow by addition alone: so states of replicas are summed,
// and the result of the sums is the result for all of them. Who trains (Model) makes one variable for each state.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/keras/files/config.h"
#include "cohort/ops/variables.h"

namespace cohort::keras {

// One state variable; zero at first and after a reset.
struct COHORT_EXPORT MetricState {
  std::string name;  // "total", "count"
  Shape shape;       // fully defined
  DType dtype = DType::kFloat64;
};

enum class MetricDirection { kNone, kUp, kDown };  // whether more is better

class COHORT_EXPORT Metric {
 public:
  virtual ~Metric() = default;
  Metric(const Metric&) = delete;
  Metric& operator=(const Metric&) = delete;

  const std::string& name() const { return name_; }  // as logs show it
  virtual MetricDirection direction() const { return MetricDirection::kNone; }

  virtual std::vector<MetricState> States() const = 0;
  // What one batch adds to each state, with the states' shapes and dtypes. y_true and y_pred as for a loss of the same
  // kind; sample_weight as in Loss::Sums, not valid: 1.
  virtual std::vector<Output> Increments(const Output& y_true, const Output& y_pred,
                                         const Output& sample_weight) const = 0;
  // The metric (a float scalar) from values of the states; 0 where nothing has been counted.
  virtual Output Result(const std::vector<Output>& states) const = 0;

  // Adds Increments to the variables `states` (one for each of States(), in order). The node has run when all have
  // changed.
  Node* Update(const std::vector<ops::Variable>& states, const Output& y_true, const Output& y_pred,
               const Output& sample_weight = {}) const;

  // As Keras's files hold it; serialization.h has the reverse. Throws UnimplementedError for a metric of the program's
  // own.
  virtual ConfigValue Serialized() const;

 protected:
  explicit Metric(std::string name) : name_(std::move(name)) {}

 private:
  const std::string name_;
};

using MetricPtr = std::shared_ptr<const Metric>;

// sum(values * weights) / sum(weights) of a value per example; what most metrics are. `per_example` is given y_true and
// y_pred with equal ranks (see Loss::Sums) and returns [batch] or [batch, d1, ...].
COHORT_EXPORT MetricPtr MeanOf(std::string name,
                               std::function<Output(const Output& y_true, const Output& y_pred)> per_example,
                               MetricDirection direction = MetricDirection::kNone);
// The weighted mean of the values given as y_pred; y_true is not looked at (and need not be valid).
COHORT_EXPORT MetricPtr Mean(const std::string& name = "mean");

// How often y_true == y_pred, element by element.
COHORT_EXPORT MetricPtr Accuracy(const std::string& name = "accuracy");
// Mean over the last axis of y_true == (y_pred > threshold).
COHORT_EXPORT MetricPtr BinaryAccuracy(const std::string& name = "binary_accuracy", double threshold = 0.5);
// argmax(y_true) == argmax(y_pred); one-hot y_true; of equal values the first one counts.
COHORT_EXPORT MetricPtr CategoricalAccuracy(const std::string& name = "categorical_accuracy");
// y_true == argmax(y_pred); integer y_true [batch] or [batch, 1].
COHORT_EXPORT MetricPtr SparseCategoricalAccuracy(const std::string& name = "sparse_categorical_accuracy");
// Whether the label is among the k largest predictions; equal ones at the border count.
COHORT_EXPORT MetricPtr TopKCategoricalAccuracy(int k = 5, const std::string& name = "top_k_categorical_accuracy");
COHORT_EXPORT MetricPtr SparseTopKCategoricalAccuracy(int k = 5,
                                                      const std::string& name = "sparse_top_k_categorical_accuracy");

enum class Curve { kRoc, kPr };
enum class SummationMethod { kInterpolation, kMinoring, kMajoring };
struct COHORT_EXPORT AucOptions {
  int num_thresholds = 200;  // > 1: -1e-7, i / (num_thresholds - 1) between, 1 + 1e-7
  Curve curve = Curve::kRoc;
  SummationMethod summation_method = SummationMethod::kInterpolation;
  std::string name = "auc";
  std::vector<double> thresholds;  // in [0, 1], sorted here; where given, they stand for num_thresholds
  bool from_logits = false;        // y_pred goes through a sigmoid first
};
// Area under the curve of a binary classifier, from counts of true and false positives and negatives at thresholds.
// y_pred in [0, 1] - a value outside fails the step with InvalidArgumentError; all its elements count as examples.
COHORT_EXPORT MetricPtr AUC(const AucOptions& options = {});

// Metrics by Keras's names ("AUC", "categorical_accuracy", "mse": the mean of a loss); the metric is called as the name
// says. "accuracy" (or "acc") is binary, sparse or categorical by the shapes: binary where y_pred's last dimension is
// 1, sparse where y_true has a lower rank or a last dimension of 1, else categorical. Throws InvalidArgumentError that
// lists the names there are.
COHORT_EXPORT MetricPtr MetricByName(const std::string& name, const Shape& y_true, const Shape& y_pred);
COHORT_EXPORT std::vector<std::string> MetricNames();

// What Compile takes: a metric or its name, which waits for the shapes. An unknown name throws at once.
class COHORT_EXPORT MetricArgument {
 public:
  MetricArgument(MetricPtr metric) : metric_(std::move(metric)) {}
  MetricArgument(const std::string& name);
  MetricArgument(const char* name) : MetricArgument(std::string(name)) {}
  MetricPtr Resolve(const Shape& y_true, const Shape& y_pred) const;
  // The name, or the metric's Serialized().
  ConfigValue Serialized() const;

 private:
  MetricPtr metric_;
  std::string name_;
};

}  // namespace cohort::keras
