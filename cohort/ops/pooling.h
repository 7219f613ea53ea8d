// Pools: the largest or the mean element of windows over images [batch, rows, columns, channels].
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort::ops {

// Rows first, then columns. padding "SAME" or "VALID" as for convolutions.
struct PoolOptions {
  std::array<int64_t, 2> size{2, 2};
  std::array<int64_t, 2> strides{2, 2};
  std::string padding = "VALID";
};

// The largest element of each window, padding left out. The gradient goes to the first of several equal ones.
Output MaxPool(Output input, const PoolOptions& options = {}, const NodeName& name = "MaxPool");
// The mean of each window, padding left out.
Output AvgPool(Output value, const PoolOptions& options = {}, const NodeName& name = "AvgPool");

}  // namespace cohort::ops
