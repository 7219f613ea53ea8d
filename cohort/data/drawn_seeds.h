// The seeds of shuffles that were described without one. Each such shuffle draws its seed when it is described.
// Processes that describe one dataset each give all of them the seeds of one process, so that their shuffles agree.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"

namespace cohort::data {

// Returns the drawn seeds of a dataset, in the order in which ToString() names their shuffles. Shuffles of the datasets
// that the function of an Interleave makes are not among them.
COHORT_EXPORT std::vector<uint64_t> DrawnSeeds(const Dataset& dataset);

// Returns the same pipeline with other drawn seeds. Stages behind a shuffle without a seed are new ones, so that a
// Cache behind it starts empty. Throws InvalidArgumentError unless there are as many seeds as DrawnSeeds() returns.
COHORT_EXPORT Dataset WithDrawnSeeds(const Dataset& dataset, const std::vector<uint64_t>& seeds);

}  // namespace cohort::data
