#include "cohort/checkpoint/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"

namespace cohort {
namespace {

using ::testing::HasSubstr;

TableEntries Many() {
  TableEntries entries = {{"", "header"}};
  for (int i = 0; i < 3000; ++i) {
    char key[16];
    std::snprintf(key, sizeof(key), "key%06d", i);
    entries.emplace_back(key, std::string(static_cast<size_t>(i % 300), static_cast<char>(i)));
  }
  entries.emplace_back("large", std::string(600000, 'l'));
  entries.emplace_back("z", "");
  return entries;
}

TEST(TableTest, EntriesTravelThroughManyBlocks) {
  const TableEntries entries = Many();
  EXPECT_EQ(DecodeTable(EncodeTable(entries), "t"), entries);
  EXPECT_TRUE(DecodeTable(EncodeTable({}), "t").empty());
}

TEST(TableTest, EveryTruncationIsDataLoss) {
  const std::string bytes = EncodeTable({{"", "header"}, {"w", "value"}});
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(DecodeTable(bytes.substr(0, length), "t"), DataLossError) << length;
  }
}

TEST(TableTest, EveryFlippedBitIsDataLossUnlessNobodyReadsIt) {
  const TableEntries entries = {{"", "header"}, {"w", "value"}};
  const std::string good = EncodeTable(entries);
  // The footer's handles, a byte each in so small a table.
  const size_t footer = good.size() - 48;
  const auto metaindex = static_cast<size_t>(good[footer]);
  const auto index = static_cast<size_t>(good[footer + 2]);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    const size_t at = bit / 8;
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (bit % 8)));
    const bool used = at < metaindex || (at >= index && at < footer) || at >= good.size() - 8;
    try {
      EXPECT_EQ(DecodeTable(bad, "t"), entries) << bit;
      EXPECT_FALSE(used) << bit;
    } catch (const DataLossError&) {
      EXPECT_TRUE(used || at < footer + 4) << bit;
    }
    if (at >= footer + 4 && at < good.size() - 8) {
      EXPECT_NO_THROW(DecodeTable(bad, "t")) << "padding";
    }
  }
}

TEST(TableTest, ErrorNamesFileAndPlace) {
  std::string bytes = EncodeTable(Many());
  bytes[300000] ^= 1;
  try {
    DecodeTable(bytes, "/dir/model.index");
    ADD_FAILURE();
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/dir/model.index is corrupt in its block at offset"));
  }
}

}  // namespace
}  // namespace cohort
