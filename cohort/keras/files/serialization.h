// Makes layers, losses, metrics, optimizers and their parts from their form in Keras's files. Their functions
// Serialized() do the reverse; for layers it is Config(). Each function is defined beside the classes that it makes. A
// value is Keras's object {"module", "class_name", "config", "registered_name"}. If Keras accepts a name instead, it
// may be a name. All functions throw InvalidArgumentError that names the class and the expected values: for an unknown
// class (it lists the known ones), for an option of which Cohort has only the default (such as use_ema), and for a
// value of another type.
#pragma once

#include <string>
#include <vector>

#include "cohort/keras/files/config.h"
#include "cohort/keras/layers/activations.h"
#include "cohort/keras/layers/initializers.h"
#include "cohort/keras/layers/layer.h"
#include "cohort/keras/layers/regularizers.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/metrics/metric.h"
#include "cohort/keras/optimizers/learning_rate_schedule.h"
#include "cohort/keras/optimizers/optimizer.h"

namespace cohort::keras {

LossPtr DeserializeLoss(const ConfigValue& value);
MetricArgument DeserializeMetric(const ConfigValue& value);
OptimizerPtr DeserializeOptimizer(const ConfigValue& value);
LearningRateSchedulePtr DeserializeSchedule(const ConfigValue& value);
// For a null value the result is not valid(), which means none.
Initializer DeserializeInitializer(const ConfigValue& value);
Regularizer DeserializeRegularizer(const ConfigValue& value);
ActivationFunction DeserializeActivation(const ConfigValue& value);

// Makes a layer of one of Keras's classes. `value` may also have the "build_config" of the layer.
LayerRef DeserializeLayer(const ConfigValue& value);
// Returns true if DeserializeLayer knows the class.
bool IsKerasLayer(const std::string& class_name);
std::vector<std::string> KerasLayerNames();

}  // namespace cohort::keras
