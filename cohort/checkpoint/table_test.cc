#include "cohort/checkpoint/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leveldb/comparator.h>
#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include "cohort/core/error.h"
#include "cohort/core/testing/throws.h"

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

// The file of a table in memory.
class Sink final : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    bytes.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }
  std::string bytes;
};

std::string Built(const leveldb::Options& options, const std::vector<std::string>& keys) {
  Sink sink;
  leveldb::TableBuilder builder(options, &sink);
  for (const std::string& key : keys) builder.Add(key, "");
  EXPECT_TRUE(builder.Finish().ok());
  return sink.bytes;
}

// Only the bytes in which a key differs from the key before it are stored.
TEST(TableTest, ASmallFileGivesNoHugeEntries) {
  leveldb::Options options;
  options.compression = leveldb::kNoCompression;
  options.block_size = size_t{1} << 30;
  options.block_restart_interval = 1000;
  std::vector<std::string> keys;
  for (char last = '\0'; last < 100; ++last) keys.push_back(std::string(1 << 20, 'k') + last);
  const std::string bytes = Built(options, keys);
  EXPECT_LT(bytes.size(), size_t{2} << 20);
  EXPECT_THAT(MessageOf<DataLossError>([&] { DecodeTable(bytes, "t"); }), HasSubstr("unpacks to more than"));
}

// If an index lists a block twice, the keys come twice. Here they descend.
TEST(TableTest, KeysMustAscend) {
  class Descending final : public leveldb::Comparator {
   public:
    int Compare(const leveldb::Slice& a, const leveldb::Slice& b) const override { return b.compare(a); }
    const char* Name() const override { return "descending"; }
    void FindShortestSeparator(std::string*, const leveldb::Slice&) const override {}
    void FindShortSuccessor(std::string*) const override {}
  };
  const Descending descending;
  leveldb::Options options;
  options.comparator = &descending;
  EXPECT_THAT(MessageOf<DataLossError>([&] {
                DecodeTable(Built(options, {"b", "a"}), "t");
              }),
              HasSubstr("not in ascending order"));
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
