// Ops that draw classes at random, for losses that do not look at all classes (sampled_losses.h). The numbers follow
// from the seeds, as those of random.h do, but they are not TensorFlow's numbers.
#pragma once

#include <cstdint>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::ops {

struct COHORT_EXPORT SampledCandidates {
  Output sampled_candidates;      // int64 [num_sampled], classes in [0, range_max)
  Output true_expected_count;     // float32 [batch, num_true]: how often each true class is expected to be drawn
  Output sampled_expected_count;  // float32 [num_sampled]: the same for each class that was drawn
};

// LogUniformCandidateSampler draws class c with the probability (log(c + 2) - log(c + 1)) / log(range_max + 1), which
// suits classes in falling order of their frequency. UniformCandidateSampler draws all classes with the same
// probability. With `unique` the classes of one draw all differ. Then a class of the probability p is expected
// 1 - (1 - p)^tries times, where `tries` is how many draws it took; otherwise num_sampled * p times. `true_classes` is
// int64 [batch, num_true]. A true class that is not in [0, range_max) fails the step with InvalidArgumentError. Throw
// InvalidArgumentError if `unique` asks for more classes than there are, and for sizes below 1.
COHORT_EXPORT SampledCandidates LogUniformCandidateSampler(Output true_classes, int num_true, int num_sampled,
                                                           bool unique, int64_t range_max, int64_t seed = 0,
                                                           const NodeName& name = "");
COHORT_EXPORT SampledCandidates UniformCandidateSampler(Output true_classes, int num_true, int num_sampled, bool unique,
                                                        int64_t range_max, int64_t seed = 0, const NodeName& name = "");

}  // namespace cohort::ops
