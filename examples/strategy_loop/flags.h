// Functions that the loop uses: they read the flag for the strategy, make points, and print the result.
#pragma once

#include <vector>

#include "cohort/cohort.h"

namespace examples {

// Reads --strategy and --num_replicas, and returns the strategy. Ends the process after --help (exit code 0), and after
// a mistake (exit code 2), which it prints to stderr.
cohort::distribute::StrategyPtr StrategyFromFlags(int argc, char** argv);

// Returns elements (x, y) with x in [-1, 1)^2 and y = 2 x0 - 3 x1 + 1. They are the same in every process.
cohort::data::Dataset PointsOnALine(int64_t count);

// Prints a line such as "2 replicas of MirroredStrategy: y = 2.000 x0 + -3.000 x1 + 1.000".
void PrintLine(const cohort::distribute::Strategy& strategy, const std::vector<cohort::Tensor>& weights);

}  // namespace examples
