// RegisterBackends: the explicit list of the backends of this build. Internal; programs reach it through
// cohort/registration.h.
#pragma once

namespace cohort {

// Adds every backend to BackendRegistry::Global() and its kernels to KernelRegistry::Global(). Thread-safe; only the
// first call does anything.
void RegisterBackends();

}  // namespace cohort
