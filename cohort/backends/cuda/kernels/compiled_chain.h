// The launch of a chain by a kernel that was made for it: one that was compiled with the program, or one that is
// compiled while the program runs.
#pragma once

#include "cohort/backends/cuda/driver.h"
#include "cohort/backends/cuda/kernels/chain.cu.h"

namespace cohort::cuda {

// Enqueues the work of LaunchChain by the kernel of a line of common_chains.txt. Returns false, and does nothing, if no
// line is about this chain. Thread-safe.
bool LaunchCommonChain(Driver& driver, StreamHandle stream, ElementType type, const ChainArgs& args);

// From how many elements on a kernel is compiled for another chain. To compile one takes as long as many launches, so
// it is not done for small values, such as a learning rate.
inline constexpr int64_t kCompiledChainElements = int64_t{1} << 16;

// Enqueues the work of LaunchChain by a kernel that was compiled for this chain. A process compiles each kernel once
// for each card, when it is first launched, and keeps it. Returns false, and does nothing, if there is no compiler, or
// if it has failed: the log says once why. Thread-safe.
bool LaunchCompiledChain(Driver& driver, int card, StreamHandle stream, ElementType type, const ChainArgs& args);

}  // namespace cohort::cuda
