// What the loop needs beside itself: a flag for the strategy, points, and a line of output.
#pragma once

#include <vector>

#include "cohort/cohort.h"

namespace examples {

// Reads --strategy and --num_replicas. Ends the process after --help (exit code 0) and after a mistake, which it names
// on stderr (2).
cohort::distribute::StrategyPtr StrategyFromFlags(int argc, char** argv);

// Elements (x, y) with x in [-1, 1)^2 and y = 2 x0 - 3 x1 + 1; the same ones in every process.
cohort::data::Dataset PointsOnALine(int64_t count);

// "2 replicas of MirroredStrategy: y = 2.000 x0 + -3.000 x1 + 1.000".
void PrintLine(const cohort::distribute::Strategy& strategy, const std::vector<cohort::Tensor>& weights);

}  // namespace examples
