// Learning-rate schedules of Keras: the learning rate as a function of the optimizer's iterations (updates so far),
// which the formulas call `step`. Schedules are immutable descriptions. The functions that make a schedule throw
// InvalidArgumentError for invalid numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/graph/graph.h"
#include "cohort/keras/files/config.h"

namespace cohort::keras {

// The base of schedules. Immutable and thread-safe. Programs and optimizers share ownership (LearningRateSchedulePtr).
class COHORT_EXPORT LearningRateSchedule {
 public:
  virtual ~LearningRateSchedule() = default;
  LearningRateSchedule(const LearningRateSchedule&) = delete;
  LearningRateSchedule& operator=(const LearningRateSchedule&) = delete;

  const std::string& name() const { return name_; }
  // Adds nodes and returns the rate, a float32 scalar. `iterations` is an integer scalar.
  virtual Output At(Output iterations) const = 0;
  // Returns the form in Keras's files; serialization.h does the reverse. Throws UnimplementedError for a schedule of
  // the program's own.
  virtual ConfigValue Serialized() const;

 protected:
  explicit LearningRateSchedule(std::string name) : name_(std::move(name)) {}

 private:
  const std::string name_;
};

using LearningRateSchedulePtr = std::shared_ptr<const LearningRateSchedule>;

struct COHORT_EXPORT ExponentialDecayOptions {
  double initial_learning_rate;
  double decay_steps;
  double decay_rate;
  bool staircase = false;
};
// initial * decay_rate^(step / decay_steps). If `staircase`, the exponent is rounded down.
COHORT_EXPORT LearningRateSchedulePtr ExponentialDecay(const ExponentialDecayOptions& options);
// initial / (1 + decay_rate * step / decay_steps). If `staircase`, step / decay_steps is rounded down.
COHORT_EXPORT LearningRateSchedulePtr InverseTimeDecay(const ExponentialDecayOptions& options);

struct COHORT_EXPORT PolynomialDecayOptions {
  double initial_learning_rate;
  double decay_steps;
  double end_learning_rate = 0.0001;
  double power = 1.0;
  bool cycle = false;
};
// (initial - end) * (1 - step / decay_steps)^power + end, with `step` limited to decay_steps. If `cycle`, `step` is not
// limited; instead decay_steps is multiplied by max(1, ceil(step / decay_steps)).
COHORT_EXPORT LearningRateSchedulePtr PolynomialDecay(const PolynomialDecayOptions& options);

struct COHORT_EXPORT CosineDecayOptions {
  double initial_learning_rate;
  double decay_steps;
  double alpha = 0.0;
  double warmup_target = 0.0;  // used if warmup_steps > 0
  double warmup_steps = 0.0;
};
// initial * ((1 - alpha) * (1 + cos(pi * step / decay_steps)) / 2 + alpha), with `step` limited to decay_steps. If
// warmup_steps > 0, the rate first grows linearly from initial to warmup_target during these steps. Then the decay
// begins: `step` counts from its begin, and warmup_target replaces `initial` in the formula.
COHORT_EXPORT LearningRateSchedulePtr CosineDecay(const CosineDecayOptions& options);

struct COHORT_EXPORT CosineDecayRestartsOptions {
  double initial_learning_rate;
  double first_decay_steps;
  double t_mul = 2.0;  // at least 1
  double m_mul = 1.0;
  double alpha = 0.0;
};
// Cosine decays, each t_mul times as long as the one before, which begin with m_mul times its rate. With c, the part of
// the running decay that is done, and i, the number of restarts so far:
// initial * ((1 - alpha) * m_mul^i * (1 + cos(pi * c)) / 2 + alpha).
COHORT_EXPORT LearningRateSchedulePtr CosineDecayRestarts(const CosineDecayRestartsOptions& options);

// values[0] while step <= boundaries[0], values[i] while boundaries[i-1] < step <= boundaries[i], then the last value.
COHORT_EXPORT LearningRateSchedulePtr PiecewiseConstantDecay(const std::vector<int64_t>& boundaries,
                                                             const std::vector<double>& values);
// Returns a schedule of the program's own. Its At calls `at`.
COHORT_EXPORT LearningRateSchedulePtr ScheduleFromFunction(std::string name,
                                                           std::function<Output(Output iterations)> at);

// An argument of optimizers: a number or a schedule.
class COHORT_EXPORT LearningRate {
 public:
  LearningRate(double value) : value_(value) {}
  LearningRate(LearningRateSchedulePtr schedule) : schedule_(std::move(schedule)) {}
  double value() const { return value_; }  // used if schedule() is null
  const LearningRateSchedulePtr& schedule() const { return schedule_; }

 private:
  double value_ = 0.0;
  LearningRateSchedulePtr schedule_;
};

}  // namespace cohort::keras
