#include "cohort/summary/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cohort/core/error.h"

namespace cohort {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

TEST(HistogramTest, LimitsAreTensorFlows) {
  const std::span<const double> limits = Histogram::BucketLimits();
  // 774 powers of 1.1 from 1e-12 to below 1e20, and the largest double, twice, and 0.
  EXPECT_EQ(limits.size(), 2 * 775 + 1u);
  EXPECT_EQ(limits[775], 0);
  EXPECT_EQ(limits[776], 1e-12);
  EXPECT_EQ(limits[777], 1e-12 * 1.1);
  EXPECT_EQ(limits.back(), kLargest);
  EXPECT_EQ(limits.front(), -kLargest);
  EXPECT_LT(limits[limits.size() - 2], 1e20);
  EXPECT_GT(limits[limits.size() - 2] * 1.1, 1e20);
  for (size_t i = 0; i < limits.size(); ++i) EXPECT_EQ(limits[i], -limits[limits.size() - 1 - i]);
}

TEST(HistogramTest, EmptyRunsCollapse) {
  Histogram histogram;
  histogram.Add(Tensor::Vector<float>({0, 0, 0, 2}));
  const HistogramData data = histogram.Encode();
  // empty up to 0, then [0, 1e-12), empty, the bucket of 2, empty.
  ASSERT_EQ(data.limits.size(), 5u);
  EXPECT_THAT(data.counts, ::testing::ElementsAre(0, 3, 0, 1, 0));
  EXPECT_EQ(data.limits[0], 0);
  EXPECT_EQ(data.limits[1], 1e-12);
  EXPECT_LE(data.limits[2], 2);
  EXPECT_GT(data.limits[3], 2);
  EXPECT_EQ(data.limits[4], kLargest);
  EXPECT_EQ(data.min, 0);
  EXPECT_EQ(data.max, 2);
  EXPECT_EQ(data.num, 4);
  EXPECT_EQ(data.sum, 2);
  EXPECT_EQ(data.sum_squares, 4);
}

TEST(HistogramTest, WithoutValuesThereIsOneBucket) {
  const HistogramData data = Histogram().Encode();
  EXPECT_THAT(data.limits, ::testing::ElementsAre(kLargest));
  EXPECT_THAT(data.counts, ::testing::ElementsAre(0));
}

TEST(HistogramTest, ExtremesHaveABucket) {
  Histogram histogram;
  for (const double value : {kLargest, -kLargest, 1e300, -1e300, 1e-300}) histogram.Add(value);
  const HistogramData data = histogram.Encode();
  double total = 0;
  for (const double count : data.counts) total += count;
  EXPECT_EQ(total, 5);
}

TEST(HistogramTest, OnlyFiniteNumbers) {
  Histogram histogram;
  EXPECT_THROW(histogram.Add(std::nan("")), InvalidArgumentError);
  EXPECT_THROW(histogram.Add(INFINITY), InvalidArgumentError);
  EXPECT_THROW(histogram.Add(Tensor::Scalar("text")), InvalidArgumentError);
  histogram.Add(Tensor::Scalar(uint8_t{3}));
  histogram.Add(Tensor::Scalar(true));
  histogram.Add(Tensor::Scalar(bfloat16(2.f)));
  EXPECT_EQ(histogram.Encode().sum, 6);
}

}  // namespace
}  // namespace cohort
