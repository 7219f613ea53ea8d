// Metrics as functions of a graph, with the names, the formulas and the defaults of tf.compat.v1.metrics. A metric adds
// up over the batches of an evaluation.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/ops/operand.h"

namespace cohort::metrics {

// A metric of an evaluation. Its variables are local, so each evaluation begins anew.
struct COHORT_EXPORT Metric {
  Output value;            // the result so far
  Node* update = nullptr;  // takes in the current batch
};

// In all functions, `weights` is a number, a scalar, or a value of the rank of the values whose dimensions are 1 or
// those of the values. Labels and predictions have one shape; a last dimension of 1 that only one of them has is
// dropped, and weights lose or get one to have the rank of the values. They throw InvalidArgumentError for shapes that
// do not fit; if a rank is not known, the step fails with it.

// The weighted mean of all values of all batches: float32 []. 0 if there was none.
COHORT_EXPORT Metric Mean(Output values, const ops::Operand& weights = 1.0f, const std::string& name = "mean");
// The part of examples whose prediction is equal to the label: float32 []. The predictions are cast to the labels'
// dtype.
COHORT_EXPORT Metric Accuracy(Output labels, Output predictions, const ops::Operand& weights = 1.0f,
                              const std::string& name = "accuracy");
// The means of |labels - predictions| and of (labels - predictions)^2, and the root of the latter: float32 [].
COHORT_EXPORT Metric MeanAbsoluteError(Output labels, Output predictions, const ops::Operand& weights = 1.0f,
                                       const std::string& name = "mean_absolute_error");
COHORT_EXPORT Metric MeanSquaredError(Output labels, Output predictions, const ops::Operand& weights = 1.0f,
                                      const std::string& name = "mean_squared_error");
COHORT_EXPORT Metric RootMeanSquaredError(Output labels, Output predictions, const ops::Operand& weights = 1.0f,
                                          const std::string& name = "root_mean_squared_error");
// Precision is TP / (TP + FP), and recall TP / (TP + FN): float32 [], and 0 for a denominator of 0. TP, FP and FN are
// the weights of the true positives, false positives and false negatives. Each label and prediction other than 0 is
// positive.
COHORT_EXPORT Metric Precision(Output labels, Output predictions, const ops::Operand& weights = 1.0f,
                               const std::string& name = "precision");
COHORT_EXPORT Metric Recall(Output labels, Output predictions, const ops::Operand& weights = 1.0f,
                            const std::string& name = "recall");
// The same for predictions in [0, 1], which are positive above each of `thresholds`: float32 [thresholds]. As in
// TensorFlow the denominators are 1e-7 larger. Throw InvalidArgumentError without a threshold.
COHORT_EXPORT Metric PrecisionAtThresholds(Output labels, Output predictions, const std::vector<float>& thresholds,
                                           const ops::Operand& weights = 1.0f,
                                           const std::string& name = "precision_at_thresholds");
COHORT_EXPORT Metric RecallAtThresholds(Output labels, Output predictions, const std::vector<float>& thresholds,
                                        const ops::Operand& weights = 1.0f,
                                        const std::string& name = "recall_at_thresholds");

enum class Curve { kRoc, kPr };
enum class SummationMethod { kTrapezoidal, kMinoring, kMajoring, kCarefulInterpolation };
struct COHORT_EXPORT AucOptions {
  ops::Operand weights = 1.0f;
  int num_thresholds = 200;  // at least 2: the points of the curve, evenly spaced from 0 to 1
  Curve curve = Curve::kRoc;
  SummationMethod summation_method = SummationMethod::kTrapezoidal;
  std::string name = "auc";
};
// The area under the curve of true positive rates over false positive rates (kRoc), or of precision over recall (kPr),
// for predictions in [0, 1]: float32 []. kCarefulInterpolation is that of Davis and Goadrich for kPr, and the
// trapezoidal rule for kRoc. A prediction out of [0, 1] fails the step with InvalidArgumentError.
COHORT_EXPORT Metric Auc(Output labels, Output predictions, const AucOptions& options = {});

}  // namespace cohort::metrics
