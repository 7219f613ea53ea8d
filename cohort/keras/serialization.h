// Losses, metrics, optimizers and schedules from their form in files. The reverse are their members Serialized().
// A value is Keras's object {"module", "class_name", "config", "registered_name"} or, where Keras takes one, a name.
// All throw InvalidArgumentError, with the class and what it expected, for a class that is not known (listing those
// that are), for options of which this library has only the default (such as use_ema), and for values of another type.
#pragma once

#include "cohort/keras/config.h"
#include "cohort/keras/learning_rate_schedule.h"
#include "cohort/keras/loss.h"
#include "cohort/keras/metric.h"
#include "cohort/keras/optimizer.h"

namespace cohort::keras {

LossPtr DeserializeLoss(const ConfigValue& value);
MetricArgument DeserializeMetric(const ConfigValue& value);
OptimizerPtr DeserializeOptimizer(const ConfigValue& value);
LearningRateSchedulePtr DeserializeSchedule(const ConfigValue& value);

}  // namespace cohort::keras
