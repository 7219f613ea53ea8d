#include "cohort/keras/testing/suite_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/str_cat.h"
#include "cohort/core/testing/throws.h"
#include "cohort/keras/testing/layer_runs.h"
#include "cohort/ops/array.h"
#include "cohort/ops/matmul.h"

namespace cohort::keras {
namespace {

// The error of a kernel names the kernel's device.
TEST(SuiteDeviceTest, AModelRunsOnTheDeviceOfTheSuites) {
  const char* type = std::getenv("COHORT_SUITE_DEVICE");
  if (type == nullptr) GTEST_SKIP() << "COHORT_SUITE_DEVICE is not set";
  RegisterAll();
  Sequential model({Input(Shape{2}), Dense(1)});
  const Output a = ops::Placeholder(model.graph(), DType::kFloat32, Shape::UnknownRank());
  const Output b = ops::Placeholder(model.graph(), DType::kFloat32, Shape::UnknownRank());
  const Output product = ops::MatMul(a, b);
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                model.session().Run({{a, Counting(Shape{2, 3})}, {b, Counting(Shape{4, 5})}}, {product});
              }),
              ::testing::HasSubstr(StrCat("/device:", type, ":0")));
}

}  // namespace
}  // namespace cohort::keras
