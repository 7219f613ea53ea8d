// The kernels of ResourceScatterAdd, ResourceScatterSub and ResourceScatterUpdate.
#pragma once

#include <memory>
#include <string_view>

#include "cohort/device/kernel.h"

namespace cohort::cuda {

inline constexpr std::string_view kScatterOps[] = {"ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterUpdate"};
bool IsScatter(std::string_view op);

// Makes the kernel of a node that stands for so many updates by this op, each with three inputs: the variable, the
// indices and the updates. Requires: IsScatter(op).
std::unique_ptr<OpKernel> MakeScatter(const KernelConstruction& c, std::string_view op, size_t updates);

}  // namespace cohort::cuda
