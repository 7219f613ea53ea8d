#include "cohort/core/record_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cohort/core/error.h"
#include "cohort/core/testing/temp_folder.h"

namespace cohort {
namespace {

using Outcome = RecordReader::Outcome;
using ::testing::HasSubstr;

void Put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

TEST(RecordIoTest, KnownFrame) {
  const std::string payload(
      "\x09\x00\x00\x00\x40\xfc\x54\xd9\x41\x1a\x0d"
      "brain.Event:2",
      24);
  std::string frame;
  EncodeRecord(payload, &frame);
  EXPECT_EQ(frame, std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12) + payload + "\xec\xed\x8f\x9d");
}

TEST(RecordIoTest, RecordsTravel) {
  const testing::TempFolder folder;
  const std::string path = folder / "records";
  const std::vector<std::string> records = {"a", "", std::string(200000, 'x'), std::string("\0b", 2)};
  RecordWriter writer(path);
  for (const std::string& record : records) writer.Write(record);
  writer.Close();
  RecordReader reader(path);
  std::string payload;
  for (const std::string& record : records) {
    ASSERT_EQ(reader.Read(&payload), Outcome::kRecord);
    EXPECT_EQ(payload, record);
  }
  EXPECT_EQ(reader.Read(&payload), Outcome::kEnd);
}

TEST(RecordIoTest, TruncationAnywhereIsToldFromCorruption) {
  const testing::TempFolder folder;
  const std::string path = folder / "records";
  std::string bytes;
  EncodeRecord("first", &bytes);
  const size_t boundary = bytes.size();
  EncodeRecord("second one", &bytes);
  for (size_t cut = boundary; cut < bytes.size(); ++cut) {
    Put(path, bytes.substr(0, cut));
    RecordReader reader(path);
    std::string payload;
    ASSERT_EQ(reader.Read(&payload), Outcome::kRecord);
    EXPECT_EQ(reader.Read(&payload), cut == boundary ? Outcome::kEnd : Outcome::kTruncated) << cut;
    EXPECT_EQ(reader.offset(), static_cast<int64_t>(boundary));
    // The rest arrives: the same reader goes on.
    std::ofstream(path, std::ios::binary | std::ios::app) << bytes.substr(cut);
    ASSERT_EQ(reader.Read(&payload), Outcome::kRecord);
    EXPECT_EQ(payload, "second one");
  }
}

TEST(RecordIoTest, EveryFlippedByteIsCorruptionWithItsPlace) {
  const testing::TempFolder folder;
  const std::string path = folder / "records";
  std::string good;
  EncodeRecord("first", &good);
  const size_t boundary = good.size();
  EncodeRecord("second", &good);
  for (size_t i = boundary; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x20);
    Put(path, bad);
    RecordReader reader(path);
    std::string payload;
    ASSERT_EQ(reader.Read(&payload), Outcome::kRecord);
    try {
      reader.Read(&payload);
      ADD_FAILURE() << "byte " << i << " was not missed";
    } catch (const DataLossError& error) {
      EXPECT_THAT(error.what(), HasSubstr("offset 21 of " + path));
    }
  }
}

TEST(RecordIoTest, MissingFileIsNamed) {
  try {
    RecordReader reader("/nowhere/records");
    ADD_FAILURE();
  } catch (const NotFoundError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/records"));
  }
}

}  // namespace
}  // namespace cohort
