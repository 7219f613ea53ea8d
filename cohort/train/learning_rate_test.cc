#include "cohort/train/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/ops/constant.h"
#include "tests/ops/interpreter.h"

namespace cohort::train {
namespace {

using ::cohort::testing::Interpreter;

class LearningRateTest : public ::testing::Test {
 protected:
  // Both integer dtypes of a step, at points around the interesting ones.
  void Check(const std::function<Output(Output)>& schedule, const std::function<double(double)>& formula) {
    for (const DType dtype : {DType::kInt64, DType::kInt32}) {
      Graph graph;
      const Output step = ops::Placeholder(graph, dtype, Shape());
      const Output rate = schedule(step);
      EXPECT_EQ(rate.dtype(), DType::kFloat32);
      EXPECT_EQ(rate.shape(), Shape());
      Interpreter run;
      for (const int64_t s : {0, 1, 3, 9, 10, 11, 19, 20, 25, 1000}) {
        const double expected = formula(static_cast<double>(s));
        EXPECT_NEAR(run.Run1(rate, {{step, ops::NumberTensor(dtype, static_cast<double>(s))}}).scalar<float>(),
                    expected, 1e-5 * std::max(1e-6, std::abs(expected)))
            << "step " << s;
      }
    }
  }
};

TEST_F(LearningRateTest, ExponentialDecay) {
  Check([](Output s) { return ExponentialDecay(0.1, s, 10, 0.96); },
        [](double s) { return 0.1 * std::pow(0.96, s / 10); });
  Check([](Output s) { return ExponentialDecay(0.1, s, 10, 0.5, true); },
        [](double s) { return 0.1 * std::pow(0.5, std::floor(s / 10)); });
}

TEST_F(LearningRateTest, InverseTimeDecay) {
  Check([](Output s) { return InverseTimeDecay(0.1, s, 10, 0.5); }, [](double s) { return 0.1 / (1 + 0.5 * s / 10); });
  Check([](Output s) { return InverseTimeDecay(0.1, s, 10, 0.5, true); },
        [](double s) { return 0.1 / (1 + 0.5 * std::floor(s / 10)); });
}

TEST_F(LearningRateTest, PolynomialDecay) {
  for (const double power : {1.0, 2.0}) {
    Check([&](Output s) { return PolynomialDecay(0.1, s, 20, 0.01, power); },
          [&](double s) { return 0.09 * std::pow(1 - std::min(s, 20.0) / 20, power) + 0.01; });
  }
  Check([](Output s) { return PolynomialDecay(0.1, s, 10, 0.01, 1.0, true); },
        [](double s) {
          const double total = 10 * std::max(1.0, std::ceil(s / 10));
          return 0.09 * (1 - s / total) + 0.01;
        });
}

TEST_F(LearningRateTest, CosineDecay) {
  Check([](Output s) { return CosineDecay(0.1, s, 20, 0.1); },
        [](double s) {
          const double cosine = 0.5 * (1 + std::cos(3.14159265358979 * std::min(s, 20.0) / 20));
          return 0.1 * (0.9 * cosine + 0.1);
        });
}

TEST_F(LearningRateTest, CosineDecayRestarts) {
  constexpr double kHalfTurn = 3.14159265358979;
  Check([](Output s) { return CosineDecayRestarts(0.1, s, 6, 1.0, 0.5, 0.2); },
        [](double s) {
          const double restarts = std::floor(s / 6);
          const double cosine = 0.5 * std::pow(0.5, restarts) * (1 + std::cos(kHalfTurn * (s / 6 - restarts)));
          return 0.1 * (0.8 * cosine + 0.2);
        });
  Check([](Output s) { return CosineDecayRestarts(0.1, s, 7, 2.0, 1.0, 0.1); },
        [](double s) {
          double begin = 0, length = 7;
          for (; s >= begin + length; length *= 2) begin += length;
          return 0.1 * (0.9 * 0.5 * (1 + std::cos(kHalfTurn * (s - begin) / length)) + 0.1);
        });
  Graph graph;
  EXPECT_THROW(CosineDecayRestarts(0.1, ops::Const(graph, 1), 7, 0.5), InvalidArgumentError);
}

TEST_F(LearningRateTest, PiecewiseConstantIncludesItsBoundaries) {
  Check(
      [](Output s) {
        return PiecewiseConstant(s, {10, 20}, {1.0, 0.5, 0.1});
      },
      [](double s) { return s <= 10 ? 1.0 : (s <= 20 ? 0.5 : 0.1); });
  Check([](Output s) { return PiecewiseConstant(s, {}, {0.3}); }, [](double) { return 0.3; });
}

TEST_F(LearningRateTest, RefusesWhatIsNoSchedule) {
  Graph graph;
  const Output step = ops::Const(graph, int64_t{0});
  EXPECT_THROW(ExponentialDecay(0.1, step, 0, 0.9), InvalidArgumentError);
  EXPECT_THROW(PiecewiseConstant(step, {10}, {1.0}), InvalidArgumentError);
  EXPECT_THROW(PiecewiseConstant(step, {10, 10}, {1.0, 2.0, 3.0}), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::train
