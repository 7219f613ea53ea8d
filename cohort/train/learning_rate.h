// Learning-rate schedules as nodes that depend on the global step, after TensorFlow's v1 functions. Each function
// returns a float32 scalar, which a Hyperparameter takes. `global_step` is a scalar of an integer or floating dtype;
// `step` is its value. Each function throws InvalidArgumentError for invalid numbers, such as decay_steps <= 0 or
// boundaries that do not increase.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"

namespace cohort::train {

// rate * decay_rate^(step / decay_steps). If `staircase`, the exponent is rounded down.
COHORT_EXPORT Output ExponentialDecay(double rate, Output global_step, double decay_steps, double decay_rate,
                                      bool staircase = false);
// rate / (1 + decay_rate * step / decay_steps). If `staircase`, step / decay_steps is rounded down.
COHORT_EXPORT Output InverseTimeDecay(double rate, Output global_step, double decay_steps, double decay_rate,
                                      bool staircase = false);
// (rate - end_rate) * (1 - step / decay_steps)^power + end_rate, with `step` limited to decay_steps. If `cycle`,
// decay_steps is instead multiplied by ceil(step / decay_steps), or by 1 at step 0.
COHORT_EXPORT Output PolynomialDecay(double rate, Output global_step, double decay_steps, double end_rate = 0.0001,
                                     double power = 1.0, bool cycle = false);
// rate * ((1 - alpha) * (1 + cos(pi * step / decay_steps)) / 2 + alpha), with `step` limited to decay_steps.
COHORT_EXPORT Output CosineDecay(double rate, Output global_step, double decay_steps, double alpha = 0.0);
// A CosineDecay that restarts: the first one lasts first_decay_steps, each further one t_mul times as long as the one
// before, and begins with m_mul times its rate. With c, the part of the running decay that is done, and i, the number
// of restarts so far: rate * ((1 - alpha) * m_mul^i * (1 + cos(pi * c)) / 2 + alpha). `t_mul` must be at least 1.
COHORT_EXPORT Output CosineDecayRestarts(double rate, Output global_step, double first_decay_steps, double t_mul = 2.0,
                                         double m_mul = 1.0, double alpha = 0.0);
// values[0] while step <= boundaries[0], values[i] while boundaries[i-1] < step <= boundaries[i], then the last value.
// `values` must have one more element than `boundaries`.
COHORT_EXPORT Output PiecewiseConstant(Output global_step, const std::vector<int64_t>& boundaries,
                                       const std::vector<double>& values);

}  // namespace cohort::train
