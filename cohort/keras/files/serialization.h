// Layers, losses, metrics, optimizers and their parts from their form in files. The reverse are their members
// Serialized(), of layers Config().
// A value is Keras's object {"module", "class_name", "config", "registered_name"} or, where Keras takes one, a name.
// All throw InvalidArgumentError, with the class and what it expected, for a class that is not known (listing those
// that are), for options of which this library has only the default (such as use_ema), and for values of another type.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/export.h"
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

COHORT_EXPORT LossPtr DeserializeLoss(const ConfigValue& value);
COHORT_EXPORT MetricArgument DeserializeMetric(const ConfigValue& value);
COHORT_EXPORT OptimizerPtr DeserializeOptimizer(const ConfigValue& value);
COHORT_EXPORT LearningRateSchedulePtr DeserializeSchedule(const ConfigValue& value);
// Null: not valid(), which is none.
COHORT_EXPORT Initializer DeserializeInitializer(const ConfigValue& value);
COHORT_EXPORT Regularizer DeserializeRegularizer(const ConfigValue& value);
COHORT_EXPORT ActivationFunction DeserializeActivation(const ConfigValue& value);

// A layer that Keras has. `value` may also have the "build_config" of the layer.
COHORT_EXPORT LayerRef DeserializeLayer(const ConfigValue& value);
// Whether DeserializeLayer knows the class.
COHORT_EXPORT bool IsKerasLayer(const std::string& class_name);
COHORT_EXPORT std::vector<std::string> KerasLayerNames();

}  // namespace cohort::keras
