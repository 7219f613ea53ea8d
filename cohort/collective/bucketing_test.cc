#include "cohort/collective/bucketing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"

namespace cohort::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Numbers = std::vector<int>;

std::vector<Numbers> Grouped(const std::vector<GradientSize>& gradients, int64_t bytes_per_pack = 0) {
  std::vector<Numbers> grouped;
  for (const Bucket& bucket : BucketGradients(gradients, bytes_per_pack)) grouped.push_back(bucket.gradients);
  return grouped;
}

std::vector<GradientSize> OfBytes(const std::vector<int64_t>& bytes) {
  std::vector<GradientSize> gradients;
  for (const int64_t b : bytes) gradients.push_back({DType::kFloat32, b});
  return gradients;
}

TEST(BucketingTest, SmallOnesShareABucketUpToTheLimit) {
  EXPECT_THAT(Grouped(OfBytes({40, 40, 20, 40, 40}), 100), ElementsAre(Numbers{0, 1, 2}, Numbers{3, 4}));
  EXPECT_THAT(Grouped(OfBytes({0, 0, 4}), 100), ElementsAre(Numbers{0, 1, 2}));
  EXPECT_THAT(Grouped({}, 100), IsEmpty());
}

TEST(BucketingTest, LargeOnesAndThoseOfUnknownSizeStandAlone) {
  EXPECT_THAT(Grouped(OfBytes({10, 50, 10, 1000, -1, 10}), 100),
              ElementsAre(Numbers{1}, Numbers{3}, Numbers{4}, Numbers{0, 2, 5}));
  EXPECT_THAT(Grouped(OfBytes({1, 1}), 1), ElementsAre(Numbers{0}, Numbers{1}));
}

TEST(BucketingTest, EachDTypeHasBucketsOfItsOwnOrderedByTheirLastGradients) {
  const std::vector<GradientSize> mixed = {{DType::kFloat32, 30},
                                           {DType::kBfloat16, 30},
                                           {DType::kFloat32, 30},
                                           {DType::kBfloat16, 30},
                                           {DType::kFloat32, 45}};
  const auto buckets = BucketGradients(mixed, 100);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_THAT(Grouped(mixed, 100), ElementsAre(Numbers{0, 2}, Numbers{1, 3}, Numbers{4}));
  EXPECT_EQ(buckets[1].dtype, DType::kBfloat16);
}

TEST(BucketingTest, EveryGradientIsInOneBucketForAnyLimit) {
  const std::vector<int64_t> bytes = {4, 1200, 8, 3, 700, 700, 1, 0, 4096, 50, 12};
  for (int64_t limit = 1; limit < 6000; limit += 7) {
    std::vector<int> seen(bytes.size(), 0);
    int last = -1;
    for (const Bucket& bucket : BucketGradients(OfBytes(bytes), limit)) {
      int64_t sum = 0;
      for (const int gradient : bucket.gradients) {
        ++seen[static_cast<size_t>(gradient)];
        sum += bytes[static_cast<size_t>(gradient)];
      }
      EXPECT_TRUE(bucket.gradients.size() == 1 || sum <= limit) << limit;
      EXPECT_TRUE(std::is_sorted(bucket.gradients.begin(), bucket.gradients.end()));
      EXPECT_GT(bucket.gradients.back(), last);
      last = bucket.gradients.back();
    }
    EXPECT_EQ(seen, std::vector<int>(bytes.size(), 1)) << limit;
  }
  EXPECT_THROW(BucketGradients({}, -1), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::collective
