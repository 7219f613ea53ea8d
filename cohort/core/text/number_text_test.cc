#include "cohort/core/text/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cohort {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(NumberTextTest, NumbersWithASignAndSpacesAround) {
  EXPECT_EQ(ParseNumber<int32_t>("42"), 42);
  EXPECT_EQ(ParseNumber<int32_t>(" \t-42\r\n"), -42);
  EXPECT_EQ(ParseNumber<int64_t>("+9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ParseNumber<float>("+1.5e3 "), 1500.0f);
  EXPECT_EQ(ParseNumber<double>(".5"), 0.5);
  EXPECT_EQ(ParseNumber<double>("-5."), -5.0);
}

TEST(NumberTextTest, SpecialValuesAndThoseOutOfRange) {
  EXPECT_EQ(ParseNumber<float>("inf"), kInfinity);
  EXPECT_EQ(ParseNumber<float>("-Infinity"), -kInfinity);
  EXPECT_TRUE(std::isnan(*ParseNumber<double>("NaN")));
  EXPECT_EQ(ParseNumber<float>("1e39"), kInfinity);
  EXPECT_EQ(ParseNumber<float>("-1e39"), -kInfinity);
  EXPECT_EQ(ParseNumber<float>("1e-60"), 0.0f);
  EXPECT_EQ(ParseNumber<float>("1e-45"), std::numeric_limits<float>::denorm_min());
}

TEST(NumberTextTest, HexadecimalFloatingNumbers) {
  EXPECT_EQ(ParseNumber<float>("0x1F"), 31.0f);
  EXPECT_EQ(ParseNumber<double>("-0Xff"), -255.0);
  EXPECT_EQ(ParseNumber<double>("0xe5"), 229.0);
  EXPECT_EQ(ParseNumber<float>("0x" + std::string(40, 'f')), kInfinity);
  for (const char* bad : {"0x", "-0x", "0xg", "0x1.8", "0x1p3", "0x-1", "0x 1", "0xinf"}) {
    EXPECT_EQ(ParseNumber<double>(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(ParseNumber<int32_t>("0x10"), std::nullopt);
}

TEST(NumberTextTest, TextsThatAreNoNumbers) {
  for (const char* bad : {"", " ", "+", "-", "+-1", "-+1", "--1", "1 2", "1.5f", "1_0", "nan(1)", "one", "1,5"}) {
    EXPECT_EQ(ParseNumber<float>(bad), std::nullopt) << bad;
    EXPECT_EQ(ParseNumber<int64_t>(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(ParseNumber<int64_t>("1.0"), std::nullopt);
  EXPECT_EQ(ParseNumber<int32_t>("2147483648"), std::nullopt);
  EXPECT_EQ(ParseNumber<uint8_t>("-1"), std::nullopt);
}

}  // namespace
}  // namespace cohort
