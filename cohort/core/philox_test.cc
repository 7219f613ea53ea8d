#include "cohort/core/philox.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace cohort {
namespace {

// The known-answer tests of the Random123 distribution for philox4x32 with 10 rounds.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox(Philox::Result{0, 0, 0, 0}, Philox::Key{0, 0})(),
            (Philox::Result{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(
      Philox(Philox::Result{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, Philox::Key{0xffffffff, 0xffffffff})(),
      (Philox::Result{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      Philox(Philox::Result{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, Philox::Key{0xa4093822, 0x299f31d0})(),
      (Philox::Result{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, SkipIsAsManyCalls) {
  for (const uint64_t count : {0u, 1u, 2u, 37u}) {
    Philox called(7, 9);
    for (uint64_t i = 0; i < count; ++i) called();
    Philox skipped(7, 9);
    skipped.Skip(count);
    EXPECT_EQ(called(), skipped()) << count;
  }
}

TEST(PhiloxTest, SkipCarriesThroughAllWordsOfTheCounter) {
  Philox carried(Philox::Result{0xffffffff, 0xffffffff, 0xffffffff, 5}, Philox::Key{1, 2});
  carried.Skip(1);
  EXPECT_EQ(carried(), Philox(Philox::Result({0, 0, 0, 6}), Philox::Key({1, 2}))());
  Philox far(Philox::Result{5, 0, 1, 0}, Philox::Key{1, 2});
  far.Skip(0xffffffffffffffffu);
  EXPECT_EQ(far(), Philox(Philox::Result({4, 0, 2, 0}), Philox::Key({1, 2}))());
}

TEST(PhiloxTest, WordsComeInTheOrderOfTheCalls) {
  Philox philox(3, 4);
  PhiloxWords words(philox);
  for (int call = 0; call < 3; ++call) {
    for (const uint32_t word : philox()) EXPECT_EQ(words(), word);
  }
}

TEST(PhiloxTest, UniformNumbersCoverTheHalfOpenInterval) {
  EXPECT_EQ(UniformFloat(0), 0.0f);
  EXPECT_EQ(UniformFloat(0x7fffff), 1.0f - 1.0f / (1 << 23));
  EXPECT_EQ(UniformFloat(0xff800000), 0.0f);  // only the lower 23 bits count
  EXPECT_EQ(UniformDouble(0, 0), 0.0);
  EXPECT_EQ(UniformDouble(0xffffffff, 0xffffffff), 1.0 - 1.0 / (int64_t{1} << 52));
}

TEST(PhiloxTest, NormalNumbersStayFiniteForTheSmallestUniformNumber) {
  const auto [sine, cosine] = NormalFloats(0, 0);
  EXPECT_EQ(sine, 0.0f);
  EXPECT_NEAR(cosine, 5.6777f, 1e-3f);  // sqrt(-2 ln 1e-7)
}

}  // namespace
}  // namespace cohort
