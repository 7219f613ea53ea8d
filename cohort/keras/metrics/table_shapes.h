// The shapes of metrics that compare tables [batch, columns]. Internal to keras/.
#pragma once

#include <string>

#include "cohort/core/shape.h"

namespace cohort::keras {

// Returns the number of columns. Throws InvalidArgumentError that names the metric if y_true and y_pred are not both
// [batch, columns], with the same known number of columns.
int64_t ColumnsOf(const std::string& metric, const Shape& y_true, const Shape& y_pred);

}  // namespace cohort::keras
