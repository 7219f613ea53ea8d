#include "cohort/core/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace cohort {
namespace {

TEST(Crc32cTest, KnownVectors) {
  EXPECT_EQ(crc32c::Value("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c::Value(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c::Value(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c::Value(""), 0u);
}

TEST(Crc32cTest, MaskIsReversible) {
  EXPECT_EQ(crc32c::Mask(0xe3069283u), 0xc78ab0e5u);
  EXPECT_EQ(crc32c::Mask(0), 0xa282ead8u);
  for (uint32_t crc : {0u, 1u, 0xe3069283u, 0xffffffffu, 0x80000000u}) {
    EXPECT_EQ(crc32c::Unmask(crc32c::Mask(crc)), crc);
  }
}

TEST(Crc32cTest, ExtendContinuesAndTableAgreesAtEveryLengthAndAlignment) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes.push_back(static_cast<char>(i * 37 + 11));
  const std::string_view view = bytes;
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t length = 0; begin + length <= bytes.size(); ++length) {
      const std::string_view part = view.substr(begin, length);
      ASSERT_EQ(crc32c::Value(part), crc32c::ExtendByTable(0, part)) << begin << " " << length;
    }
  }
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    EXPECT_EQ(crc32c::Extend(crc32c::Value(view.substr(0, cut)), view.substr(cut)), crc32c::Value(view));
  }
}

}  // namespace
}  // namespace cohort
