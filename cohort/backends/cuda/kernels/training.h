// What graph passes ask about the kernels of optimizers.
#pragma once

#include <string_view>

namespace cohort::cuda {

// Returns whether the kernel of joined updates (graph/joined_updates.h) makes updates by this op.
bool CanJoinUpdates(std::string_view op);

}  // namespace cohort::cuda
