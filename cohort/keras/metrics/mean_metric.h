// MeanOf of a metric that Keras's files know. Internal to keras/.
#pragma once

#include <functional>
#include <string>

#include "cohort/keras/files/config.h"
#include "cohort/keras/metrics/metric.h"

namespace cohort::keras {

// `class_name` in keras.metrics; `options`: what the class's configuration has beside name and dtype.
MetricPtr KerasMeanOf(std::string name, const std::string& class_name, const ConfigValue::Object& options,
                      MetricDirection direction,
                      std::function<Output(const Output& y_true, const Output& y_pred)> per_example);

}  // namespace cohort::keras
