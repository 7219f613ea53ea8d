// The one list of what exists: ops, kernels, session factories. Including this header (cohort.h does) registers all of
// it before main() runs.
#pragma once

#include "cohort/core/export.h"

namespace cohort {

// Idempotent and thread-safe. Returns true, so that it can initialise a constant.
COHORT_EXPORT bool RegisterAll();

inline const bool kAllRegistered = RegisterAll();

}  // namespace cohort
