#include "cohort/data/standard_scaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/error.h"

namespace cohort::data {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::FloatNear;

// Values as scikit-learn 1.4's StandardScaler().fit([[0, 10], [2, 10], [7, 10]]) has them.
TEST(StandardScalerTest, FitsEachFeature) {
  StandardScaler scaler;
  const std::vector<float> values = {0, 10, 2, 10, 7, 10};
  scaler.Fit(Tensor::FromValues(values, Shape{3, 2}));
  EXPECT_THAT(scaler.mean(), ElementsAre(DoubleNear(3, 1e-12), DoubleNear(10, 1e-12)));
  const double deviation = std::sqrt((9.0 + 1 + 16) / 3);
  EXPECT_THAT(scaler.scale(), ElementsAre(DoubleNear(deviation, 1e-12), 1.0));  // a constant feature is not blown up
  const Tensor scaled = scaler.Transform(Tensor::FromValues(values, Shape{3, 2}));
  EXPECT_THAT(scaled.ToVector<float>(), ElementsAre(FloatNear(static_cast<float>(-3 / deviation), 1e-6f), 0,
                                                    FloatNear(static_cast<float>(-1 / deviation), 1e-6f), 0,
                                                    FloatNear(static_cast<float>(4 / deviation), 1e-6f), 0));
  EXPECT_THAT(scaler.InverseTransform(scaled).ToVector<float>(),
              ::testing::Pointwise(::testing::FloatNear(1e-6f), values));
}

TEST(StandardScalerTest, FitTransformIsFitAndThenTransform) {
  const Tensor rows = Tensor::FromValues(std::vector<float>{0, 10, 2, 10, 7, 10}, Shape{3, 2});
  StandardScaler scaler, same;
  scaler.Fit(Tensor::FromValues(std::vector<float>{100, 200}, Shape{1, 2}));  // is forgotten
  const Tensor scaled = scaler.FitTransform(rows);
  same.Fit(rows);
  EXPECT_EQ(scaled.ToVector<float>(), same.Transform(rows).ToVector<float>());
  EXPECT_EQ(scaler.mean(), same.mean());
}

template <typename T>
Tensor Rows(const std::vector<int>& values, const Shape& shape) {
  Tensor tensor(kDTypeOf<T>, shape);
  for (size_t i = 0; i < values.size(); ++i) tensor.data<T>()[i] = T(static_cast<float>(values[i]));
  return tensor;
}

TEST(StandardScalerTest, TakesEveryNumber) {
  const std::vector<int> values = {1, 2, 3, 4, 5, 60, 7, 8};
  const Shape shape{2, 2, 2};
  StandardScaler expected;
  expected.Fit(Rows<float>(values, shape));
  for (const Tensor& rows : {Rows<double>(values, shape), Rows<int32_t>(values, shape), Rows<int64_t>(values, shape),
                             Rows<uint8_t>(values, shape), Rows<bfloat16>(values, shape)}) {
    StandardScaler scaler;
    scaler.Fit(rows);
    EXPECT_EQ(scaler.mean(), expected.mean()) << rows.dtype();
    EXPECT_EQ(scaler.scale(), expected.scale()) << rows.dtype();
    EXPECT_EQ(scaler.Transform(rows).dtype(), DType::kFloat32);
    EXPECT_EQ(scaler.feature_shape(), (Shape{2, 2}));
  }
}

TEST(StandardScalerTest, IsExactFarFromZero) {
  StandardScaler scaler;
  Tensor rows(DType::kFloat64, Shape{1000, 1});
  for (int64_t i = 0; i < 1000; ++i) rows.data<double>()[i] = 1e9 + static_cast<double>(i % 2);
  scaler.Fit(rows);
  EXPECT_NEAR(scaler.scale()[0], 0.5, 1e-7);
}

TEST(StandardScalerTest, DatasetsAndPartsAreTheSameAsTheWhole) {
  const Tensor rows = Rows<float>({5, 1, 4, 1, 3, 9, 2, 6}, Shape{4, 2});
  StandardScaler whole, streamed, parts;
  whole.Fit(rows);
  streamed.Fit(Dataset::FromTensorSlices({rows, rows}), 1);
  parts.PartialFit(rows.Slice(0, 1));
  parts.PartialFit(rows.Slice(1, 4));
  for (const StandardScaler* scaler : {&streamed, &parts}) {
    EXPECT_EQ(scaler->mean(), whole.mean());
    EXPECT_EQ(scaler->scale(), whole.scale());
  }
  EXPECT_EQ(whole.Transform(rows.Slice(0, 1).Reshaped(Shape{2})).shape(), Shape{2});
}

TEST(StandardScalerTest, RefusesWhatDoesNotFit) {
  StandardScaler scaler;
  EXPECT_THROW(scaler.Transform(Tensor::Vector<float>({1})), FailedPreconditionError);
  EXPECT_THROW(scaler.Fit(Tensor::Vector<float>({})), InvalidArgumentError);
  EXPECT_THROW(scaler.Fit(Tensor::Scalar(1.0f)), InvalidArgumentError);
  EXPECT_THROW(scaler.Fit(Tensor::Vector<std::string>({"a"})), InvalidArgumentError);
  EXPECT_THROW(scaler.Fit(Dataset::Range(0)), InvalidArgumentError);
  EXPECT_THROW(scaler.Fit(Dataset::Range(2), 1), InvalidArgumentError);
  scaler.Fit(Rows<float>({1, 2, 3, 4}, Shape{2, 2}));
  EXPECT_THROW(scaler.PartialFit(Rows<float>({1, 2, 3}, Shape{1, 3})), InvalidArgumentError);
  EXPECT_THROW(scaler.Transform(Rows<float>({1, 2, 3}, Shape{1, 3})), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::data
