#include "cohort/backends/cpu/kernels/combine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "cohort/core/error.h"

namespace cohort::cpu {
namespace {

constexpr int64_t kCount = 37;  // some vectors and a rest

template <typename T>
std::vector<T> Combine(ReduceOp op, const std::vector<T>& a, const std::vector<T>& b, int64_t divisor = 1) {
  std::vector<T> out(a.size());
  const DType dtype = kDTypeOf<T>;
  Combiner(op, dtype, dtype, dtype, dtype)(a.data(), b.data(), out.data(), static_cast<int64_t>(a.size()), divisor);
  return out;
}

template <typename T>
class CombineTest : public ::testing::Test {};
using Numbers = ::testing::Types<float, double, int32_t, int64_t, uint8_t>;
TYPED_TEST_SUITE(CombineTest, Numbers);

TYPED_TEST(CombineTest, EveryOperation) {
  std::vector<TypeParam> a, b;
  for (int i = 0; i < kCount; ++i) {
    a.push_back(static_cast<TypeParam>(i % 7));
    b.push_back(static_cast<TypeParam>(i % 5 + 1));
  }
  const auto sum = Combine(ReduceOp::kSum, a, b);
  const auto product = Combine(ReduceOp::kProduct, a, b);
  const auto least = Combine(ReduceOp::kMin, a, b);
  const auto most = Combine(ReduceOp::kMax, a, b);
  const auto mean = Combine(ReduceOp::kMean, a, b, 4);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(sum[i], static_cast<TypeParam>(a[i] + b[i]));
    EXPECT_EQ(product[i], static_cast<TypeParam>(a[i] * b[i]));
    EXPECT_EQ(least[i], std::min(a[i], b[i]));
    EXPECT_EQ(most[i], std::max(a[i], b[i]));
    EXPECT_EQ(mean[i], static_cast<TypeParam>((a[i] + b[i]) / 4));
  }
}

TEST(CombineLoops, IntegersWrapAndDivideTowardsZero) {
  EXPECT_EQ(Combine<int32_t>(ReduceOp::kSum, {INT32_MAX}, {1})[0], INT32_MIN);
  EXPECT_EQ(Combine<uint8_t>(ReduceOp::kSum, {200}, {100})[0], 44);
  EXPECT_EQ(Combine<int32_t>(ReduceOp::kMean, {-5}, {-2}, 2)[0], -3);
}

TEST(CombineLoops, MinAndMaxHandOnANaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    EXPECT_TRUE(std::isnan(Combine<float>(op, {nan}, {1})[0]));
    EXPECT_TRUE(std::isnan(Combine<float>(op, {1}, {nan})[0]));
  }
}

TEST(CombineLoops, Bfloat16IsRoundedOnlyWhereItIsWritten) {
  const std::vector<bfloat16> one(kCount, bfloat16(1.0f));
  const std::vector<bfloat16> tiny(kCount, bfloat16(0.001953125f));  // 2^-9: lost when added to 1 in bfloat16
  std::vector<float> wide(kCount);
  Combiner(ReduceOp::kSum, DType::kBfloat16, DType::kBfloat16, DType::kBfloat16, DType::kFloat32)(
      one.data(), tiny.data(), wide.data(), kCount, 1);
  for (const float value : wide) EXPECT_EQ(value, 1.001953125f);
  for (int i = 0; i < 2; ++i) {  // in place, either way round
    const auto add =
        i == 0 ? Combiner(ReduceOp::kSum, DType::kBfloat16, DType::kFloat32, DType::kBfloat16, DType::kFloat32)
               : Combiner(ReduceOp::kSum, DType::kBfloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat32);
    if (i == 0) add(wide.data(), tiny.data(), wide.data(), kCount, 1);
    if (i == 1) add(tiny.data(), wide.data(), wide.data(), kCount, 1);
  }
  std::vector<bfloat16> narrow(kCount);
  Combiner(ReduceOp::kMean, DType::kBfloat16, DType::kFloat32, DType::kFloat32, DType::kBfloat16)(
      wide.data(), wide.data(), narrow.data(), kCount, 2);
  for (const bfloat16 value : narrow) EXPECT_EQ(static_cast<float>(value), static_cast<float>(bfloat16(1.005859375f)));
}

TEST(CombineLoops, RefusesWhatAreNoNumbers) {
  EXPECT_THROW(Combiner(ReduceOp::kSum, DType::kBool, DType::kBool, DType::kBool, DType::kBool), UnimplementedError);
  EXPECT_THROW(Combiner(ReduceOp::kSum, DType::kInt32, DType::kInt32, DType::kFloat32, DType::kInt32),
               UnimplementedError);
}

}  // namespace
}  // namespace cohort::cpu
