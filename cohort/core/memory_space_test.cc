#include "cohort/core/memory_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

TEST(MemorySpaceTest, SpacesOfDifferentDevicesDiffer) {
  const MemorySpace first = MemorySpace::OfDevice("MEMORY_SPACE_TEST_A", 0);
  EXPECT_FALSE(first.is_host());
  EXPECT_FALSE(first == MemorySpace::Host());
  EXPECT_TRUE(first == MemorySpace::OfDevice("MEMORY_SPACE_TEST_A", 0));
  EXPECT_FALSE(first == MemorySpace::OfDevice("MEMORY_SPACE_TEST_A", 1));
  EXPECT_FALSE(first == MemorySpace::OfDevice("MEMORY_SPACE_TEST_B", 0));
  EXPECT_TRUE(MemorySpace().is_host());
}

TEST(MemorySpaceTest, TextNamesTypeAndOrdinal) {
  EXPECT_EQ(MemorySpace::Host().ToString(), "host");
  EXPECT_EQ(MemorySpace::OfDevice("MEMORY_SPACE_TEST_A", 16777215).ToString(), "MEMORY_SPACE_TEST_A:16777215");
}

TEST(MemorySpaceTest, OrdinalsOutOfRangeAreRefused) {
  for (const int64_t ordinal : {int64_t{-1}, int64_t{16777216}}) {
    try {
      MemorySpace::OfDevice("MEMORY_SPACE_TEST_A", ordinal);
      FAIL();
    } catch (const InvalidArgumentError& e) {
      EXPECT_THAT(e.what(), HasSubstr(std::to_string(ordinal)));
      EXPECT_THAT(e.what(), HasSubstr("MEMORY_SPACE_TEST_A"));
    }
  }
}

}  // namespace
}  // namespace cohort
