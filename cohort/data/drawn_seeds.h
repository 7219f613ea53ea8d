// The seeds of shuffles without a seed. Such a shuffle draws its seed when it is described. If several processes
// describe the same dataset, all take the seeds that one of them has drawn, so that their shuffles agree.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"

namespace cohort::data {

// Returns the drawn seeds of a dataset, in the order in which ToString() names their shuffles. Shuffles inside the
// datasets that an Interleave's function makes are not included.
COHORT_EXPORT std::vector<uint64_t> DrawnSeeds(const Dataset& dataset);

// Returns the same pipeline with other drawn seeds. The stages after a shuffle without a seed are made anew, so a Cache
// among them starts empty. Throws InvalidArgumentError unless there are as many seeds as DrawnSeeds() returns.
COHORT_EXPORT Dataset WithDrawnSeeds(const Dataset& dataset, const std::vector<uint64_t>& seeds);

}  // namespace cohort::data
