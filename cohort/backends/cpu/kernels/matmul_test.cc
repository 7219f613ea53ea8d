#include "cohort/ops/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/ops/array.h"
#include "cohort/ops/constant.h"
#include "tests/ops/interpreter.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;
using testing::Interpreter;

// Small integers, exact in every dtype (bfloat16 included), so that products are exact too.
Tensor Integers(const Shape& shape, int seed) {
  Tensor tensor(DType::kFloat64, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data<double>()[i] = static_cast<double>((i * 31 + seed * 17) % 7 - 3);
  }
  return tensor;
}

std::vector<double> PlainProduct(const Tensor& a, const Tensor& b, bool ta, bool tb, int64_t m, int64_t n, int64_t k) {
  std::vector<double> c(static_cast<size_t>(m * n), 0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t p = 0; p < k; ++p) {
        c[static_cast<size_t>(i * n + j)] +=
            a.data<double>()[ta ? p * m + i : i * k + p] * b.data<double>()[tb ? j * k + p : p * n + j];
      }
    }
  }
  return c;
}

using Params = std::tuple<DType, bool, bool>;
class MatMulTest : public ::testing::TestWithParam<Params> {};

TEST_P(MatMulTest, AgreesWithThePlainLoops) {
  const auto [dtype, ta, tb] = GetParam();
  Graph graph;
  const Output a = ops::Placeholder(graph, DType::kFloat64, Shape{-1, -1});
  const Output b = ops::Placeholder(graph, DType::kFloat64, Shape{-1, -1});
  // One node for all sizes: nothing may be kept from one to the next.
  const Output c = ops::Cast(ops::MatMul(ops::Cast(a, dtype), ops::Cast(b, dtype), ta, tb), DType::kFloat64);
  for (const int threads : {1, 2}) {
    Interpreter interpreter(threads);
    for (const auto& [m, n, k] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{{1, 1, 1},
                                                                                    {3, 5, 2},
                                                                                    {16, 16, 16},
                                                                                    {17, 16, 16},
                                                                                    {1, 300, 40},
                                                                                    {300, 1, 40},
                                                                                    {65, 129, 33},
                                                                                    {130, 260, 5},
                                                                                    {5, 7, 400},
                                                                                    {0, 3, 2},
                                                                                    {2, 3, 0}}) {
      const Tensor x = Integers(ta ? Shape{k, m} : Shape{m, k}, 1), y = Integers(tb ? Shape{n, k} : Shape{k, n}, 2);
      const std::vector<double> expected = PlainProduct(x, y, ta, tb, m, n, k);
      for (int sight = 0; sight < 3; ++sight) {  // sizes that come back may take another way
        const std::vector<double> actual = interpreter.Run1(c, {{a, x}, {b, y}}).ToVector<double>();
        ASSERT_EQ(actual.size(), expected.size());
        for (size_t i = 0; i < actual.size(); ++i) {
          // bfloat16 results have eight bits.
          const double tolerance = dtype == DType::kBfloat16 ? std::abs(expected[i]) / 256 : 0;
          ASSERT_NEAR(actual[i], expected[i], tolerance) << m << "x" << n << "x" << k << " element " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, MatMulTest,
                         ::testing::Combine(::testing::Values(DType::kFloat32, DType::kFloat64, DType::kBfloat16,
                                                              DType::kInt32, DType::kInt64),
                                            ::testing::Bool(), ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(DTypeName(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) ? "_ta" : "") + (std::get<2>(info.param) ? "_tb" : "");
                         });

TEST(MatMulTest, InnerDimensionsThatDifferAreNamed) {
  Graph graph;
  const Output a = ops::Placeholder(graph, DType::kFloat32, Shape{2, 3}),
               b = ops::Placeholder(graph, DType::kFloat32, Shape{4, 5});
  try {
    ops::MatMul(a, b);
    FAIL() << "nothing was thrown";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("[2,3]"));
    EXPECT_THAT(error.what(), HasSubstr("[4,5]"));
    EXPECT_THAT(error.what(), HasSubstr("inner dimensions 3 and 4 differ"));
  }
}

TEST(MatMulTest, NonFiniteValuesSpread) {
  Graph graph;
  const Output a = ops::Const(graph, std::vector<float>{NAN, 0, 1, 1}, Shape{2, 2});
  const Output b = ops::Const(graph, std::vector<float>{0, INFINITY}, Shape{2, 1});
  const Tensor c = Interpreter().Run1(ops::MatMul(a, b));
  EXPECT_TRUE(std::isnan(c.data<float>()[0]));
  EXPECT_TRUE(std::isinf(c.data<float>()[1]));
}

}  // namespace
}  // namespace cohort
