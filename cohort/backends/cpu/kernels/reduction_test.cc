#include "cohort/ops/reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "cohort/backends/reduction_plan.h"
#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/ops/constant.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Interpreter;

// Element i is i mod 13 - 5.
Tensor Numbers(const Shape& shape) {
  Tensor tensor(DType::kFloat64, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.data<double>()[i] = static_cast<double>(i % 13 - 5);
  return tensor;
}

// Sums over the axes in `mask`, one element at a time.
std::vector<double> PlainSum(const Tensor& x, uint32_t mask) {
  const Shape& shape = x.shape();
  int64_t outputs = 1;
  for (int d = 0; d < shape.rank(); ++d) outputs *= (mask >> d & 1u) != 0 ? 1 : shape.dim(d);
  std::vector<double> sums(static_cast<size_t>(outputs), 0);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    int64_t rest = i, at = 0, stride = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      const int64_t index = rest % shape.dim(d);
      rest /= shape.dim(d);
      if ((mask >> d & 1u) != 0) continue;
      at += index * stride;
      stride *= shape.dim(d);
    }
    sums[static_cast<size_t>(at)] += x.data<double>()[i];
  }
  return sums;
}

TEST(ReductionTest, EverySetOfAxesOfFiveDimensions) {
  const Tensor x = Numbers({2, 3, 1, 4, 3});
  Graph graph;
  const Output input = ops::Placeholder(graph, DType::kFloat64, x.shape());
  for (uint32_t mask = 0; mask < 32; ++mask) {
    std::vector<int64_t> axes;
    for (int d = 0; d < 5; ++d) {
      if ((mask >> d & 1u) != 0) axes.push_back(d % 2 == 0 ? d : d - 5);
    }
    const Output sum = ops::Sum(input, axes);
    for (const int threads : {1, 2}) {
      Interpreter interpreter(threads);
      EXPECT_EQ(interpreter.Run1(sum, {{input, x}}).ToVector<double>(), PlainSum(x, mask)) << "axes " << mask;
    }
  }
}

TEST(ReductionTest, ThreadsDoNotChangeResults) {
  const Shape shape{50, 40, 60};
  Tensor x(DType::kFloat32, shape);
  for (int64_t i = 0; i < x.num_elements(); ++i) x.data<float>()[i] = 0.1f * static_cast<float>(i % 97);
  Graph graph;
  const Output input = ops::Placeholder(graph, DType::kFloat32, shape);
  const std::vector<Output> sums = {ops::Sum(input),      ops::Sum(input, {0}),    ops::Sum(input, {2}),
                                    ops::Sum(input, {1}), ops::Sum(input, {0, 2}), ops::Sum(input, {0, 1}),
                                    ops::Max(input, {0})};
  const std::vector<Tensor> one = Interpreter(1).Run(sums, {{input, x}}),
                            three = Interpreter(3).Run(sums, {{input, x}});
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(std::memcmp(one[i].raw_data(), three[i].raw_data(), one[i].bytes()), 0) << "sum " << i;
  }
}

TEST(ReductionTest, LongFloatSumsStayExact) {
  constexpr int64_t kRows = 100352;  // a batch of 128 images of 28 x 28: the gradient of a bias
  Tensor x(DType::kFloat32, {kRows, 3});
  for (int64_t i = 0; i < x.num_elements(); ++i) x.data<float>()[i] = 0.1f;
  Graph graph;
  const Output input = ops::Placeholder(graph, DType::kFloat32, Shape{kRows, 3});
  Interpreter interpreter;
  const double exact = static_cast<double>(kRows) * static_cast<double>(0.1f);
  const Tensor sums = interpreter.Run1(ops::Sum(input, {0}), {{input, x}});
  for (const float sum : sums.values<float>()) {
    EXPECT_NEAR(sum, exact, exact * 2e-6);
  }
  EXPECT_NEAR(interpreter.Run1(ops::Sum(input), {{input, x}}).scalar<float>(), 3 * exact, 3 * exact * 1e-6);
}

TEST(ReductionTest, MeansOfIntegersDoNotWrapAround) {
  Graph graph;
  const Output bytes = ops::Const(graph, Tensor::Vector(std::vector<uint8_t>(300, 200)));
  const Output large = ops::Const(graph, std::vector<int32_t>{2000000000, 2000000000});
  Interpreter interpreter;
  EXPECT_EQ(interpreter.Run1(ops::Mean(bytes)).scalar<uint8_t>(), 200);
  EXPECT_EQ(interpreter.Run1(ops::Mean(large)).scalar<int32_t>(), 2000000000);
}

TEST(ReductionTest, WrongAxesAreNamed) {
  Graph graph;
  const Output x = ops::Placeholder(graph, DType::kFloat32, Shape{2, 3});
  const auto message = [&](const std::vector<int64_t>& axes) {
    return MessageOf<InvalidArgumentError>([&] { ops::Sum(x, axes); });
  };
  EXPECT_THAT(message({2}), HasSubstr("axis 2 is out of range for rank 2"));
  EXPECT_THAT(message({0, -2}), HasSubstr("axis -2 is given twice"));
}

TEST(ReductionPlanTest, MergesNeighboursOfOneKind) {
  const ReductionPlan plan = PlanReduction(Shape{2, 3, 1, 4, 5}, Tensor::Vector(std::vector<int32_t>{-1, 3}), true);
  EXPECT_EQ(plan.output, (Shape{2, 3, 1, 1, 1}));
  ASSERT_EQ(plan.rank, 2);
  EXPECT_EQ(plan.dims[0], 6);
  EXPECT_FALSE(plan.reduced[0]);
  EXPECT_EQ(plan.dims[1], 20);
  EXPECT_TRUE(plan.reduced[1]);
}

}  // namespace
}  // namespace cohort
