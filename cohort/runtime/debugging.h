// debugging: what a program prints about itself. The names are those of TensorFlow's tf.debugging.
#pragma once

#include "cohort/core/export.h"

namespace cohort::debugging {

// If `enabled`, every session of the process that prepares a signature from now on prints one line for each op to
// stdout, as with SessionConfig::log_device_placement. If not, only sessions with that field do. Thread-safe.
COHORT_EXPORT void SetLogDevicePlacement(bool enabled);
// Returns what SetLogDevicePlacement was given last, or false.
COHORT_EXPORT bool GetLogDevicePlacement();

}  // namespace cohort::debugging
