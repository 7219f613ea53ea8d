#include "cohort/data/drawn_seeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"
#include "cohort/data/testing/drain.h"

namespace cohort::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Dataset TwoShuffles() {
  const Dataset inner = Dataset::Range(40).Shuffle(40).Concatenate(Dataset::Range(40, 50));
  return inner.Shuffle(8, /*seed=*/3).Shuffle(5).Repeat(2);
}

TEST(DrawnSeedsTest, DatasetsWithEqualSeedsHaveEqualOrders) {
  const Dataset chiefs = TwoShuffles();
  const Dataset other = TwoShuffles();
  ASSERT_EQ(DrawnSeeds(chiefs).size(), 2u) << "the shuffle with a seed draws none";
  EXPECT_NE(DrawnSeeds(chiefs), DrawnSeeds(other));
  EXPECT_NE(Scalars(chiefs), Scalars(other));
  const Dataset shared = WithDrawnSeeds(other, DrawnSeeds(chiefs));
  EXPECT_EQ(DrawnSeeds(shared), DrawnSeeds(chiefs));
  EXPECT_EQ(shared.ToString(), other.ToString());
  for (const int64_t epoch : {0, 3}) {
    const auto expected = chiefs.MakeIterator({.epoch = epoch}), got = shared.MakeIterator({.epoch = epoch});
    std::vector<Tensor> a, b;
    while (expected->Next(&a)) {
      ASSERT_TRUE(got->Next(&b));
      EXPECT_EQ(a[0].scalar<int64_t>(), b[0].scalar<int64_t>());
    }
    EXPECT_FALSE(got->Next(&b));
  }
}

TEST(DrawnSeedsTest, SeedsKeepTheOrderOfTheStages) {
  const Dataset described = Dataset::Zip({Dataset::Range(9).Shuffle(9), Dataset::Range(9).Shuffle(9)}).Shuffle(4);
  EXPECT_THAT(DrawnSeeds(WithDrawnSeeds(described, {11, 22, 33})), ElementsAre(11, 22, 33));
}

TEST(DrawnSeedsTest, DatasetsWithoutSuchShufflesStayAsTheyAre) {
  const Dataset seeded = Dataset::Range(9).Shuffle(9, /*seed=*/1).Cache();
  EXPECT_THAT(DrawnSeeds(seeded), IsEmpty());
  EXPECT_EQ(WithDrawnSeeds(seeded, {}).node(), seeded.node());
  EXPECT_THAT(MessageOf<InvalidArgumentError>([&] {
                WithDrawnSeeds(seeded.Shuffle(2), {1, 2});
              }),
              AllOf(HasSubstr("each of the 1 shuffles"), HasSubstr("Shuffle(2)"), HasSubstr("got 2")));
}

// What a Cache holds is in the order of the seeds with which it was filled.
TEST(DrawnSeedsTest, ACacheBehindAShuffleBeginsAnew) {
  const Dataset cached = Dataset::Range(30).Shuffle(30).Cache();
  const std::vector<int64_t> before = Scalars(cached);
  const std::vector<int64_t> after = Scalars(WithDrawnSeeds(cached, {DrawnSeeds(cached)[0] + 1}));
  EXPECT_NE(after, before);
  EXPECT_TRUE(std::is_permutation(after.begin(), after.end(), before.begin()));
  EXPECT_EQ(Scalars(cached), before);
}

}  // namespace
}  // namespace cohort::data
