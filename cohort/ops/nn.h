// Small parts of networks: bias, dropout, L2 loss, top-k accuracy. Tensors are float32, float64 or bfloat16, if a
// comment does not say otherwise.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

// Returns value + bias. bias is [channels], along the last axis ("NHWC") or axis 1 ("NCHW"). Throws
// InvalidArgumentError for shapes that do not fit.
COHORT_EXPORT Output BiasAdd(Output value, Output bias, const std::string& data_format = "NHWC",
                             const std::string& name = "BiasAdd");
// Returns the scalar sum(t^2) / 2.
COHORT_EXPORT Output L2Loss(Output t, const std::string& name = "L2Loss");
// Returns x with each element set to zero with probability `rate`. The others are divided by 1 - rate. Each step draws
// new numbers; see ops/random.h for `seed`. If `rate` is 0, returns x. Throws InvalidArgumentError for a rate outside
// [0, 1).
COHORT_EXPORT Output Dropout(Output x, double rate, int64_t seed = 0, const std::string& name = "dropout");
// As Dropout, but the numbers follow only from `seed` (int32 or int64 [2]).
COHORT_EXPORT Output StatelessDropout(Output x, double rate, Output seed, const std::string& name = "dropout");
// Returns bool [batch]: whether targets[b] (int32 or int64) is among the k largest of predictions[b] (float32 [batch,
// classes]). Values that are equal to the k-th largest count. The result is false for a target that is out of range, or
// a row that is not finite.
COHORT_EXPORT Output InTopK(Output predictions, Output targets, int64_t k, const std::string& name = "in_top_k");

}  // namespace cohort::ops
