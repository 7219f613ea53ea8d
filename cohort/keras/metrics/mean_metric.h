// KerasMeanOf: MeanOf for the metrics that Keras's files can contain. Internal to keras/.
#pragma once

#include <functional>
#include <string>

#include "cohort/keras/files/config.h"
#include "cohort/keras/metrics/metric.h"

namespace cohort::keras {

// `class_name` is the class in keras.metrics. `options` are the class's configuration without name and dtype.
MetricPtr KerasMeanOf(std::string name, const std::string& class_name, const ConfigValue::Object& options,
                      MetricDirection direction,
                      std::function<Output(const Output& y_true, const Output& y_pred)> per_example);

}  // namespace cohort::keras
