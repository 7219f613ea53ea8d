#include "cohort/train/learning_rate.h"

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "cohort/ops/math.h"

namespace cohort::train {
namespace {

constexpr double kPi = 3.14159265358979323846;

Output Number(Output like, double value) { return ops::ScalarLike(like, value); }

// The step as float32.
Output StepOf(Output global_step, double decay_steps) {
  if (!(decay_steps > 0.0)) {
    throw InvalidArgumentError(StrCat("[train/learning_rate] expected decay_steps > 0; got ", decay_steps));
  }
  return ops::Cast(global_step, DType::kFloat32);
}

// Returns step / decay_steps, rounded down for a staircase.
Output Periods(Output global_step, double decay_steps, bool staircase) {
  const Output step = StepOf(global_step, decay_steps);
  const Output periods = ops::Div(step, Number(step, decay_steps));
  return staircase ? ops::Floor(periods) : periods;
}

}  // namespace

Output ExponentialDecay(double rate, Output global_step, double decay_steps, double decay_rate, bool staircase) {
  const NameScope scope(global_step.graph(), "ExponentialDecay");
  const Output periods = Periods(global_step, decay_steps, staircase);
  return ops::Mul(Number(periods, rate), ops::Pow(Number(periods, decay_rate), periods));
}

Output InverseTimeDecay(double rate, Output global_step, double decay_steps, double decay_rate, bool staircase) {
  const NameScope scope(global_step.graph(), "InverseTimeDecay");
  const Output periods = Periods(global_step, decay_steps, staircase);
  const Output divisor = ops::Add(Number(periods, 1.0), ops::Mul(Number(periods, decay_rate), periods));
  return ops::Div(Number(periods, rate), divisor);
}

Output PolynomialDecay(double rate, Output global_step, double decay_steps, double end_rate, double power, bool cycle) {
  const NameScope scope(global_step.graph(), "PolynomialDecay");
  const Output step = StepOf(global_step, decay_steps);
  Output total = Number(step, decay_steps);
  Output done = step;
  if (cycle) {
    const Output one = Number(step, 1.0);
    total = ops::Mul(total, ops::Maximum(one, ops::Ceil(ops::Div(step, total))));
  } else {
    done = ops::Minimum(step, total);
  }
  const Output left = ops::Sub(Number(step, 1.0), ops::Div(done, total));
  const Output shape = power == 1.0 ? left : ops::Pow(left, Number(step, power));
  return ops::Add(ops::Mul(Number(step, rate - end_rate), shape), Number(step, end_rate));
}

Output CosineDecay(double rate, Output global_step, double decay_steps, double alpha) {
  const NameScope scope(global_step.graph(), "CosineDecay");
  const Output step = StepOf(global_step, decay_steps);
  const Output total = Number(step, decay_steps);
  const Output angle = ops::Mul(Number(step, kPi), ops::Div(ops::Minimum(step, total), total));
  const Output cosine = ops::Mul(Number(step, 0.5), ops::Add(Number(step, 1.0), ops::Cos(angle)));
  const Output factor = ops::Add(ops::Mul(Number(step, 1.0 - alpha), cosine), Number(step, alpha));
  return ops::Mul(Number(step, rate), factor);
}

Output CosineDecayRestarts(double rate, Output global_step, double first_decay_steps, double t_mul, double m_mul,
                           double alpha) {
  if (!(t_mul >= 1.0)) {
    throw InvalidArgumentError(StrCat("[train/learning_rate] expected t_mul of at least 1; got ", t_mul));
  }
  const NameScope scope(global_step.graph(), "SGDRDecay");
  const Output periods = Periods(global_step, first_decay_steps, /*staircase=*/false);
  const auto number = [&](double value) { return Number(periods, value); };
  Output restarts, done;
  if (t_mul == 1.0) {
    restarts = ops::Floor(periods);
    done = periods - restarts;
  } else {
    const Output base = number(t_mul), one = number(1.0);
    restarts = ops::Floor(ops::Div(ops::Log(one + periods * number(t_mul - 1.0)), ops::Log(base)));
    const Output length = ops::Pow(base, restarts);  // of the running decay, and the sum of those before it
    const Output before = ops::Div(one - length, number(1.0 - t_mul));
    done = ops::Div(periods - before, length);
  }
  const Output cosine = number(0.5) * ops::Pow(number(m_mul), restarts) * (number(1.0) + ops::Cos(number(kPi) * done));
  return number(rate) * (number(1.0 - alpha) * cosine + number(alpha));
}

Output PiecewiseConstant(Output global_step, const std::vector<int64_t>& boundaries,
                         const std::vector<double>& values) {
  if (values.size() != boundaries.size() + 1) {
    throw InvalidArgumentError(StrCat("[train/learning_rate] expected one value more than boundaries; got ",
                                      values.size(), " values and ", boundaries.size(), " boundaries"));
  }
  for (size_t i = 1; i < boundaries.size(); ++i) {
    if (boundaries[i] <= boundaries[i - 1]) {
      throw InvalidArgumentError(StrCat("[train/learning_rate] expected boundaries that grow; got ", boundaries[i - 1],
                                        " before ", boundaries[i]));
    }
  }
  Graph& graph = global_step.graph();
  const NameScope scope(graph, "PiecewiseConstant");
  const Output step = ops::Cast(global_step, DType::kInt64);
  Output rate = ops::Const(graph, static_cast<float>(values.back()));
  for (size_t i = boundaries.size(); i-- > 0;) {
    const Output before = ops::LessEqual(step, ops::Const(graph, boundaries[i]));
    rate = ops::SelectV2(before, ops::Const(graph, static_cast<float>(values[i])), rate);
  }
  return rate;
}

}  // namespace cohort::train
