// Small parts of networks: bias, dropout, L2 loss, top-k accuracy.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// value + bias, bias [channels] along the last axis ("NHWC") or axis 1 ("NCHW").
COHORT_EXPORT Output BiasAdd(Output value, Output bias, const std::string& data_format = "NHWC",
                             const std::string& name = "BiasAdd");
// sum(t^2) / 2, a scalar.
COHORT_EXPORT Output L2Loss(Output t, const std::string& name = "L2Loss");
// Each element is zero with probability `rate`, the others are divided by 1 - rate. New numbers every step; see
// ops/random.h for `seed`. rate 0 gives x. Throws InvalidArgumentError for a rate outside [0, 1).
COHORT_EXPORT Output Dropout(Output x, double rate, int64_t seed = 0, const std::string& name = "dropout");
// The same with numbers that follow from `seed` (int32 or int64 [2]) alone.
COHORT_EXPORT Output StatelessDropout(Output x, double rate, Output seed, const std::string& name = "dropout");
// Whether targets[b] is among the k largest of predictions[b] (float32 [batch, classes]); equal ones at the border
// count. False for a target out of range or a row that is not finite. Result: bool [batch].
COHORT_EXPORT Output InTopK(Output predictions, Output targets, int64_t k, const std::string& name = "in_top_k");

}  // namespace cohort::ops
