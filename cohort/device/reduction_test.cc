#include "cohort/device/reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

namespace cohort {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ReductionsTest, EachDeviceTypeHasItsTable) {
  Reductions reductions;
  const auto same = [](DType dtype) { return dtype; };
  const auto wide = [](DType) { return DType::kFloat64; };
  const auto find = [](ReduceOp, DType, DType, DType, DType) -> ReduceFn { return nullptr; };
  reductions.Register("ONE", {same, find});
  reductions.Register("TWO", {wide, find});
  EXPECT_EQ(reductions.Find("ONE").accumulator_of(DType::kFloat32), DType::kFloat32);
  EXPECT_EQ(reductions.Find("TWO").accumulator_of(DType::kFloat32), DType::kFloat64);
  EXPECT_THAT(MessageOf<FailedPreconditionError>([&] { reductions.Find("THREE"); }),
              AllOf(HasSubstr("THREE"), HasSubstr("2 device types"), HasSubstr("RegisterAll()")));
}

}  // namespace
}  // namespace cohort
