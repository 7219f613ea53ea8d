// Pools: the largest or the mean element of windows over images [batch, rows, columns, channels]. Images are float32 or
// bfloat16. Throw InvalidArgumentError for windows that do not fit.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// The options of a pool. In each array the rows come first, then the columns. padding is "SAME" or "VALID", as for
// convolutions.
struct COHORT_EXPORT PoolOptions {
  std::array<int64_t, 2> size{2, 2};
  std::array<int64_t, 2> strides{2, 2};
  std::string padding = "VALID";
};

// Returns the largest element of each window, without the padding. If several elements are equal, the gradient goes to
// the first.
COHORT_EXPORT Output MaxPool(Output input, const PoolOptions& options = {}, const std::string& name = "MaxPool");
// Returns the mean of each window, without the padding.
COHORT_EXPORT Output AvgPool(Output value, const PoolOptions& options = {}, const std::string& name = "AvgPool");

}  // namespace cohort::ops
