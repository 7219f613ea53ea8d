// Learning-rate schedules as nodes on the global step, after TensorFlow's v1 functions. Each returns a float32 scalar,
// which a Hyperparameter takes. `global_step`: an integer or floating scalar; step means its value. Numbers that make
// no schedule (decay_steps <= 0, boundaries that do not grow) are InvalidArgumentErrors.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::train {

// rate decay_rate^(step / decay_steps); `staircase`: the exponent is cut to a whole number.
COHORT_EXPORT Output ExponentialDecay(double rate, Output global_step, double decay_steps, double decay_rate,
                                      bool staircase = false);
// rate / (1 + decay_rate step / decay_steps); `staircase`: step / decay_steps is cut to a whole number.
COHORT_EXPORT Output InverseTimeDecay(double rate, Output global_step, double decay_steps, double decay_rate,
                                      bool staircase = false);
// (rate - end_rate) (1 - step / decay_steps)^power + end_rate, step at most decay_steps. `cycle`: decay_steps is
// multiplied by ceil(step / decay_steps), at least 1.
COHORT_EXPORT Output PolynomialDecay(double rate, Output global_step, double decay_steps, double end_rate = 0.0001,
                                     double power = 1.0, bool cycle = false);
// rate ((1 - alpha) (1 + cos(pi step / decay_steps)) / 2 + alpha), step at most decay_steps.
COHORT_EXPORT Output CosineDecay(double rate, Output global_step, double decay_steps, double alpha = 0.0);
// values[0] while step <= boundaries[0], values[i] while boundaries[i-1] < step <= boundaries[i], then the last one.
// values has one element more than boundaries.
COHORT_EXPORT Output PiecewiseConstant(Output global_step, const std::vector<int64_t>& boundaries,
                                       const std::vector<double>& values);

}  // namespace cohort::train
