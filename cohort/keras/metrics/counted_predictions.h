// The predictions that a metric of true and false positives and negatives counts. Internal to keras/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort::keras {

// Labels, predictions and their weights, of one shape.
struct CountedPredictions {
  Output is_positive;  // bool: any label but 0 is positive, as in Keras
  Output predictions;  // float32
  Output weights;      // float32

  // Returns, as bool, which predictions are above `threshold`. One that is not a number is not.
  Output IsAbove(double threshold) const;
  // Returns the sum of the weights of the chosen predictions, a float64 scalar.
  Output WeightOf(const Output& chosen) const;
};

// Returns the predictions, or those of the class `class_id` (an element of the last axis) if it is set. The arguments
// are those of Metric::Increments. Throws InvalidArgumentError that names the metric if the shapes do not fit.
CountedPredictions CountPredictions(const std::string& metric, const std::optional<int64_t>& class_id,
                                    const Output& y_true, const Output& y_pred, const Output& sample_weight);

// Throw InvalidArgumentError, with the class of the metric, if an option is out of range.
void CheckThreshold(const char* class_name, double threshold);
void CheckClassId(const char* class_name, const std::optional<int64_t>& class_id);

}  // namespace cohort::keras
