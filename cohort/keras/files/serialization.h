// Makes layers, losses, metrics, optimizers and their parts from their form in Keras's files. The member functions
// Serialized(), and for layers Config(), do the reverse. Each function is defined beside the classes that it makes. A
// value is Keras's object {"module", "class_name", "config", "registered_name"}, or a name if Keras accepts a name
// there. All Deserialize functions throw InvalidArgumentError that names the class and the expected values: for an
// unknown class (the error lists the known classes); for an option of a wrong type; and for an option that Cohort does
// not support (such as use_ema), if it does not have Keras's default.
#pragma once

#include <functional>
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
// For a null value, the result of the next three functions is not valid(): there is no initializer, regularizer or
// activation function.
COHORT_EXPORT Initializer DeserializeInitializer(const ConfigValue& value);
COHORT_EXPORT Regularizer DeserializeRegularizer(const ConfigValue& value);
COHORT_EXPORT ActivationFunction DeserializeActivation(const ConfigValue& value);

// Makes a layer of one of Keras's classes. A normalization layer can only be made if its "axis" is the last one, which
// Cohort writes as -1. Files may have a positive number instead. If `value` has a "build_config" with the input_shape,
// this function finds out from the shape if the number means the last axis. `inner` makes the layers that a
// Bidirectional or a TimeDistributed contains. By default this function makes them.
COHORT_EXPORT LayerRef DeserializeLayer(const ConfigValue& value,
                                        const std::function<LayerRef(const ConfigValue&)>& inner = {});
// Returns true if DeserializeLayer knows the class.
COHORT_EXPORT bool IsKerasLayer(const std::string& class_name);
COHORT_EXPORT std::vector<std::string> KerasLayerNames();

}  // namespace cohort::keras
