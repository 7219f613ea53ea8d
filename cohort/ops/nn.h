// Small parts of networks: bias, dropout, L2 loss, top-k accuracy.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/graph/graph.h"

namespace cohort::ops {

// value + bias, bias [channels] along the last axis ("NHWC") or axis 1 ("NCHW").
Output BiasAdd(Output value, Output bias, const std::string& data_format = "NHWC", const NodeName& name = "BiasAdd");
// sum(t^2) / 2, a scalar.
Output L2Loss(Output t, const NodeName& name = "L2Loss");
// Each element is zero with probability `rate`, the others are divided by 1 - rate. New numbers every step; see
// ops/random.h for `seed`. rate 0 gives x. Throws InvalidArgumentError for a rate outside [0, 1).
Output Dropout(Output x, double rate, int64_t seed = 0, const NodeName& name = "dropout");
// The same with numbers that follow from `seed` (int32 or int64 [2]) alone.
Output StatelessDropout(Output x, double rate, Output seed, const NodeName& name = "dropout");
// Whether targets[b] is among the k largest of predictions[b] (float32 [batch, classes]); equal ones at the border
// count. False for a target out of range or a row that is not finite. Result: bool [batch].
Output InTopK(Output predictions, Output targets, int64_t k, const NodeName& name = "in_top_k");

}  // namespace cohort::ops
