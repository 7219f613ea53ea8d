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
// probability. With `unique` the classes of one draw all differ: a class that came before is drawn anew, so that it
// takes `tries` >= num_sampled draws. Then a class of the probability p is expected 1 - (1 - p)^tries times. If no
// class had to be drawn anew (tries = num_sampled), and always without `unique`, it is expected num_sampled * p times;
// this is TensorFlow's rule. `true_classes` is int64 [batch, num_true]. A true class that is not in [0, range_max)
// fails the step with InvalidArgumentError. Throw InvalidArgumentError if `unique` asks for more classes than there
// are, and for sizes below 1.
COHORT_EXPORT SampledCandidates LogUniformCandidateSampler(Output true_classes, int num_true, int num_sampled,
                                                           bool unique, int64_t range_max, int64_t seed = 0,
                                                           const NodeName& name = "");
COHORT_EXPORT SampledCandidates UniformCandidateSampler(Output true_classes, int num_true, int num_sampled, bool unique,
                                                        int64_t range_max, int64_t seed = 0, const NodeName& name = "");

}  // namespace cohort::ops
