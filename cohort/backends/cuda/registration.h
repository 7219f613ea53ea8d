// Registers the CUDA backend. Programs call RegisterBackends (cohort/backends/register.h).
#pragma once

namespace cohort::cuda {

// Registers the backend and its kernels if the machine seems to have a driver, and lets the config list the physical
// devices (ListCards), which asks the driver at the first use of the config. If there is no GPU then, a line of the log
// says why, also in a build without CUDA.
void RegisterCudaBackend();

}  // namespace cohort::cuda
