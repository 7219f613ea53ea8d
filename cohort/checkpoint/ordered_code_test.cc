#include "cohort/checkpoint/ordered_code.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <vector>

namespace cohort {
namespace {

std::string Hex(const std::string& bytes) {
  std::string hex;
  for (const char c : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(c));
    hex += digits;
  }
  return hex;
}

std::string Signed(int64_t value) {
  std::string out;
  ordered_code::AppendSigned(value, &out);
  return out;
}

TEST(OrderedCodeTest, SignedVectors) {
  const std::vector<std::pair<int64_t, const char*>> vectors = {
      {0, "80"},      {1, "81"},     {-1, "7f"},     {63, "bf"},       {64, "c040"},
      {-64, "40"},    {-65, "3fbf"}, {8191, "dfff"}, {8192, "e02000"}, {0x424242, "f0424242"},
      {-2048, "3800"}};
  for (const auto& [value, hex] : vectors) EXPECT_EQ(Hex(Signed(value)), hex) << value;
}

TEST(OrderedCodeTest, SignedSortsAsTheNumbersDo) {
  std::vector<int64_t> values = {std::numeric_limits<int64_t>::min()};
  for (int bit = 62; bit >= 0; --bit) values.push_back(-(int64_t{1} << bit) - 1);
  for (int64_t value = -130; value <= 130; ++value) values.push_back(value);
  for (int bit = 8; bit < 63; ++bit) {
    values.push_back((int64_t{1} << bit) - 1);
    values.push_back(int64_t{1} << bit);
  }
  values.push_back(std::numeric_limits<int64_t>::max());
  std::sort(values.begin(), values.end());
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i - 1] == values[i]) continue;
    EXPECT_LT(Signed(values[i - 1]), Signed(values[i])) << values[i - 1] << " " << values[i];
  }
  EXPECT_EQ(Signed(std::numeric_limits<int64_t>::max()).size(), 10u);
  EXPECT_EQ(Signed(std::numeric_limits<int64_t>::min()).size(), 10u);
}

TEST(OrderedCodeTest, StringsAndUnsigned) {
  std::string out;
  ordered_code::AppendString(std::string("a\0\xff"
                                         "b",
                                         4),
                             &out);
  EXPECT_EQ(Hex(out), "6100ffff00620001");
  out.clear();
  for (const uint64_t value : {uint64_t{0}, uint64_t{2}, uint64_t{256}, ~uint64_t{0}}) {
    ordered_code::AppendUnsigned(value, &out);
  }
  EXPECT_EQ(Hex(out), "00010202010008ffffffffffffffff");
}

}  // namespace
}  // namespace cohort
