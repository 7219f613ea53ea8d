// Layers, losses and metrics as functions of a graph, for model functions of an Estimator. They have the names and the
// defaults of tf.compat.v1.layers, tf.compat.v1.losses and tf.compat.v1.metrics.
#pragma once

#include "cohort/estimator/layers.h"   // IWYU pragma: export
#include "cohort/estimator/losses.h"   // IWYU pragma: export
#include "cohort/estimator/metrics.h"  // IWYU pragma: export
