// RegisterAll(): registers everything that this program has: ops, kernels, session factories and more. Code that
// includes this header (as cohort.h does) has all of it before main() runs.
#pragma once

#include "cohort/core/export.h"

namespace cohort {

// Only the first call has an effect. Thread-safe. Returns true, so that it can initialize a constant.
COHORT_EXPORT bool RegisterAll();

inline const bool kAllRegistered = RegisterAll();

}  // namespace cohort
