// Layers, losses, metrics, optimizers and their parts from their form in files. The reverse are their members
// Serialized(), of layers Config().
// A value is Keras's object {"module", "class_name", "config", "registered_name"} or, where Keras takes one, a name.
// All throw InvalidArgumentError, with the class and what it expected, for a class that is not known (listing those
// that are), for options of which this library has only the default (such as use_ema), and for values of another type.
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
// Null: not valid(), which is none.
Initializer DeserializeInitializer(const ConfigValue& value);
Regularizer DeserializeRegularizer(const ConfigValue& value);
ActivationFunction DeserializeActivation(const ConfigValue& value);

// A layer that Keras has. `value` may also have the "build_config" of the layer.
LayerRef DeserializeLayer(const ConfigValue& value);
// Whether DeserializeLayer knows the class.
bool IsKerasLayer(const std::string& class_name);
std::vector<std::string> KerasLayerNames();

}  // namespace cohort::keras
